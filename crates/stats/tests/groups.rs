//! Values of two kinds: where the boundary is, and where there is none.

use numalab_stats::{Rng, two_groups};

/// Returns values about 0 and about 10, all different.
fn values(low: usize, high: usize) -> Vec<f64> {
    let about = |middle: f64, count: usize| {
        (0..count).map(move |at| middle + 0.1 * (at as f64 / count as f64 - 0.5))
    };
    about(0.0, low).chain(about(10.0, high)).collect()
}

#[test]
fn the_boundary_is_between_groups_of_two_fifths_or_more() {
    for (low, high) in [(20, 20), (16, 24), (24, 16)] {
        let boundary = two_groups(&values(low, high)).expect("two kinds");
        assert!((4.9..5.1).contains(&boundary), "{low} and {high}: {boundary}");
    }
}

#[test]
fn a_smaller_group_is_not_a_mode_and_takes_no_value_of_the_other() {
    for (low, high) in [(25, 15), (15, 25), (30, 10), (39, 1)] {
        assert_eq!(two_groups(&values(low, high)), None, "{low} and {high}");
    }
}

#[test]
fn a_few_values_far_from_both_groups_do_not_hide_them() {
    for far in [-500.0, 500.0, 12.0] {
        let mut with_outliers = values(20, 20);
        with_outliers.extend([far, 1.01 * far]);
        let boundary = two_groups(&with_outliers).expect("two kinds");
        assert!((0.1..9.9).contains(&boundary), "{far}: {boundary}");
    }
}

/// Sums of squares found none of such boundaries, and a fleet page named 77 of 196 healthy hosts.
#[test]
fn kinds_6_percent_apart_are_separated_with_4_and_12_bad_hosts_and_one_kind_never() {
    let mut rng = Rng::new(3);
    let mut normal = || (0..12).map(|_| rng.uniform()).sum::<f64>() - 6.0;
    for (bad, least) in [(0, 198), (4, 196), (12, 180)] {
        let found = (0..200).filter(|_| {
            let mut host = |at: usize| {
                let kind = if at % 5 < 2 { 0.06 } else { 0.0 };
                kind + if at < bad { 0.15 } else { 0.0 } + 0.007 * normal()
            };
            let values: Vec<f64> = (0..200).map(&mut host).collect();
            two_groups(&values).is_some_and(|boundary| (0.01..0.05).contains(&boundary))
        });
        let found = found.count();
        println!("{bad} bad of 200: {found} of 200 boundaries found");
        assert!(found >= least, "{bad}: {found}");
    }
    let mut is_split = || two_groups(&(0..200).map(|_| normal()).collect::<Vec<f64>>()).is_some();
    let split = (0..500).filter(|_| is_split()).count();
    assert_eq!(split, 0, "of one kind");
}

#[test]
fn values_of_one_kind_and_a_few_have_no_boundary() {
    let even: Vec<f64> = (0..40).map(f64::from).collect();
    assert_eq!(two_groups(&even), None);
    assert_eq!(two_groups(&[1.0, 1.0, 9.0]), None, "two of each at least");
    assert_eq!(two_groups(&[]), None);
    assert_eq!(two_groups(&[1.0, 1.0, 1.0, 1.0]), None, "all alike");
}
