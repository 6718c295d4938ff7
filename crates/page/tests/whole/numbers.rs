//! Figures, sizes and times as readers see them.

use numalab_page::number::{
    approximate_size, count, duration, figure, interval_text, percent, ratio, ratio_of,
    seconds_words, share, share_words, size, size_words, trimmed,
};
use numalab_stats::Interval;

/// Asserts the text of each value.
#[track_caller]
fn texts<T: Copy + std::fmt::Debug>(format: impl Fn(T) -> String, expected: &[(T, &str)]) {
    for (value, text) in expected {
        assert_eq!(format(*value), *text, "{value:?}");
    }
}

#[test]
fn figures_have_three_digits_at_every_magnitude_and_at_its_borders() {
    texts(
        figure,
        &[
            (0.0, "0.00"),
            (0.000_999, "9.99e-4"),
            (0.001, "0.00100"),
            (0.009_994, "0.00999"),
            (0.009_996, "0.0100"),
            (0.017_54, "0.0175"),
            (0.099_94, "0.0999"),
            (0.099_96, "0.100"),
            (0.9994, "0.999"),
            (0.9995, "1.00"),
            (9.994, "9.99"),
            (9.995, "10.0"),
            (99.94, "99.9"),
            (99.95, "100"),
            (-173.4, "-173"),
            (9_999_999.0, "9999999"),
            (1e7, "1.00e7"),
            (f64::NAN, "–"),
            (f64::NEG_INFINITY, "–"),
        ],
    );
    texts(ratio, &[(1.624, "1.62x"), (f64::INFINITY, "–x")]);
}

#[test]
fn the_bounds_of_an_interval_are_printed_with_enough_digits_to_differ() {
    let text = |(lo, hi)| interval_text(Some(Interval { lo, hi }));
    texts(
        text,
        &[
            ((97.94, 98.57), "97.9 – 98.6"),
            ((97.941, 97.957), "97.94 – 97.96"),
            ((1.0, 3.0), "1.00 – 3.00"),
            ((5.0, 5.0), "5.00 – 5.00"),
            ((99_999.1, 99_999.4), "99999.1 – 99999.4"),
            ((100_000.1, 100_000.4), "100000 – 100000"),
        ],
    );
    assert_eq!(interval_text(None), "–");
}

#[test]
fn shares_are_zero_or_all_only_if_they_are_exactly_that() {
    let of = |(part, whole)| share(part, whole);
    texts(
        of,
        &[((0, 9), "0 %"), ((3, 0), "0 %"), ((1, 10_000), "under 0.1 %"), ((9, 9), "100.0 %")],
    );
    texts(
        share_words,
        &[
            (-0.1, "0 %"),
            (0.0, "0 %"),
            (0.0009, "under 0.1 %"),
            (0.003, "0.3 %"),
            (0.0995, "10 %"),
            (0.96, "96 %"),
            (0.995, "100 %"),
            (0.9951, "over 99 %"),
            (1.0, "100 %"),
        ],
    );
    assert_eq!([ratio_of(1, 4), ratio_of(1, 0)], [0.25, 0.0]);
}

#[test]
fn changes_have_a_sign_and_no_more_digits_than_they_need() {
    texts(percent, &[(0.0, "+0.00 %"), (-3.25, "-3.25 %"), (9.995, "+10.0 %"), (f64::NAN, "–")]);
    texts(trimmed, &[(1.0, "1"), (0.25, "0.25"), (10.0, "10"), (2.504, "2.5"), (0.0, "0")]);
    assert_eq!([count(1, "cell"), count(0, "cell")], ["1 cell", "0 cells"]);
}

#[test]
fn sizes_are_in_binary_units() {
    texts(
        size,
        &[
            (0, "0"),
            (999, "999"),
            (1023, "1023"),
            (1024, "1K"),
            (49_152, "48K"),
            (1_572_864, "1.5M"),
            (1 << 30, "1G"),
            (u64::MAX, "16E"),
        ],
    );
    texts(size_words, &[(512, "512 B"), (1536, "1.5 KiB"), (3 << 40, "3 TiB")]);
    texts(
        approximate_size,
        &[(57_753.6, "56.4K"), (1e30, "867361737988E"), (-1.0, "–"), (f64::INFINITY, "–")],
    );
}

#[test]
fn times_have_the_unit_that_suits_them() {
    let ns = |seconds: u64| seconds * 1_000_000_000;
    texts(
        duration,
        &[
            (999_999, "0 ms"),
            (ns(1) - 1, "999 ms"),
            (ns(1), "1 s"),
            (ns(599), "599 s"),
            (ns(600), "10 min"),
        ],
    );
    texts(
        seconds_words,
        &[
            (0.4, "0 s"),
            (119.0, "119 s"),
            (120.0, "2 min"),
            (7_199.0, "120 min"),
            (7_200.0, "2.0 h"),
        ],
    );
}
