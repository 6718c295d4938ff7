//! Properties that hold for any values.

use numalab_stats::{
    Alternative, Confidence, Criteria, Direction, Error, Margin, Rng, Sample, Verdict,
    benjamini_hochberg, compare, compare_paired, equivalence_paired, hodges_lehmann,
    hodges_lehmann_interval, holm, median_interval_serial, rank_sum, ratio_of_means, shift,
    shift_interval, signed_rank,
};
use proptest::prelude::*;

/// Values with ties and without.
fn values(sizes: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f64>> {
    let value = prop_oneof![(1_i32..12).prop_map(f64::from), 0.5_f64..100.0];
    proptest::collection::vec(value, sizes)
}

fn sample(values: &[f64]) -> Sample {
    Sample::new(values).unwrap()
}

fn mapped(values: &[f64], function: impl Fn(f64) -> f64) -> Sample {
    Sample::new(values.iter().map(|value| function(*value)).collect::<Vec<_>>()).unwrap()
}

fn shuffled(values: &[f64], seed: u64) -> Sample {
    let mut values = values.to_vec();
    Rng::new(seed).shuffle(&mut values);
    Sample::new(values).unwrap()
}

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-9 * expected.abs().max(1.0)
}

proptest! {
    #[test]
    fn centres_move_with_shift_and_scale(x in values(1..40), by in -50_f64..50.0, k in 0.1_f64..9.0) {
        let moved = mapped(&x, |value| k * value + by);
        let x = sample(&x);
        for centre in [Sample::median, Sample::mean, hodges_lehmann] {
            prop_assert!(close(centre(&moved), k * centre(&x) + by));
        }
        prop_assert!(close(moved.standard_deviation(), k * x.standard_deviation()));
    }

    #[test]
    fn intervals_move_with_scale_and_hold_their_estimate(x in values(6..60), k in 0.1_f64..9.0) {
        let (scaled, x) = (mapped(&x, |value| k * value), sample(&x));
        let of = hodges_lehmann_interval;
        let (moved, still) = (of(&scaled, Confidence::P95)?, of(&x, Confidence::P95)?);
        prop_assert!(close(moved.interval.lo, k * still.interval.lo));
        prop_assert!(close(moved.interval.hi, k * still.interval.hi));
        prop_assert!(still.interval.contains(still.value) && still.coverage >= 0.949);
        if let Ok(serial) = median_interval_serial(&x, Confidence::P95) {
            prop_assert!(serial.estimate.interval.contains(serial.estimate.value));
            prop_assert!(serial.effective_size <= x.len() as f64 && serial.effective_size > 0.0);
        }
    }

    #[test]
    fn higher_confidence_is_never_narrower(x in values(8..60)) {
        let x = sample(&x);
        let p95 = hodges_lehmann_interval(&x, Confidence::P95)?;
        prop_assert!(p95.interval.within(&hodges_lehmann_interval(&x, Confidence::P99)?.interval));
    }

    #[test]
    fn order_does_not_matter_where_time_does_not(a in values(4..30), b in values(4..30), seed: u64) {
        let (c, d) = (shuffled(&a, seed), shuffled(&b, seed ^ 1));
        let (a, b) = (sample(&a), sample(&b));
        let criteria = Criteria::new(Direction::LowerIsBetter);
        prop_assert_eq!(compare(&a, &b, &criteria), compare(&c, &d, &criteria));
    }

    #[test]
    fn exchanging_the_samples_reverses_the_effect_and_the_verdict(a in values(1..20), b in values(1..20)) {
        let (a, b) = (sample(&a), sample(&b));
        prop_assert!(close(shift(&a, &b), -shift(&b, &a)));
        let criteria = Criteria::new(Direction::LowerIsBetter);
        let turned = match compare(&a, &b, &criteria).verdict {
            Verdict::Better => Verdict::Worse,
            Verdict::Worse => Verdict::Better,
            same => same,
        };
        prop_assert_eq!(compare(&b, &a, &criteria).verdict, turned);
    }

    #[test]
    fn tests_stay_the_same_under_monotone_maps(a in values(1..20), b in values(1..20)) {
        let squares = (mapped(&a, |x| x * x), mapped(&b, |x| x * x));
        for side in [Alternative::TwoSided, Alternative::Less, Alternative::Greater] {
            let test = rank_sum(&sample(&a), &sample(&b), side);
            prop_assert_eq!(test, rank_sum(&squares.0, &squares.1, side));
            prop_assert!(test.p > 0.0 && test.p <= 1.0);
        }
    }

    #[test]
    fn the_sides_of_a_signed_rank_test_share_the_statistic(x in values(1..60), c in 0_f64..60.0) {
        let differences = mapped(&x, |value| value - c);
        let p = |side| signed_rank(&differences, side).p;
        let (less, greater) = (p(Alternative::Less), p(Alternative::Greater));
        prop_assert!(close(p(Alternative::TwoSided), (2.0 * less.min(greater)).min(1.0)));
        prop_assert!(less + greater >= 1.0 - 1e-12);
    }

    #[test]
    fn the_interval_of_a_shift_agrees_with_its_test(a in values(4..25), b in values(4..25)) {
        let (a, b) = (sample(&a), sample(&b));
        let p = rank_sum(&a, &b, Alternative::TwoSided).p;
        let interval = shift_interval(&a, &b, Confidence::P95)?.interval;
        let ties = a.values().iter().any(|x| b.values().contains(x));
        // Without ties between the samples the two statements are the same.
        let all: Vec<f64> = [a.values(), b.values()].concat();
        let mut sorted = all.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.dedup();
        if !ties && sorted.len() == all.len() {
            prop_assert_eq!(p > 0.05, interval.contains(0.0));
        }
    }

    #[test]
    fn a_wider_margin_is_never_harder_to_keep(x in values(2..30), bound in 0.01_f64..5.0) {
        let centre = sample(&x).median();
        let centred = mapped(&x, |value| value - centre);
        let narrow = equivalence_paired(&centred, bound).p();
        prop_assert!(equivalence_paired(&centred, 20.0 * bound).p() <= narrow + 1e-12);
    }

    #[test]
    fn adjusted_p_values_keep_their_order_and_never_fall(p in proptest::collection::vec(0_f64..1.0, 0..20)) {
        let (strict, loose) = (holm(&p), benjamini_hochberg(&p));
        for i in 0..p.len() {
            prop_assert!(p[i] <= loose[i] + 1e-15 && loose[i] <= strict[i] + 1e-15 && strict[i] <= 1.0);
            for j in 0..p.len() {
                prop_assert!(p[i] > p[j] || (strict[i] <= strict[j] && loose[i] <= loose[j]));
            }
        }
    }

    #[test]
    fn any_finite_values_are_compared_without_a_panic(
        a in proptest::collection::vec(proptest::num::f64::NORMAL | proptest::num::f64::ZERO, 1..9),
        b in proptest::collection::vec(proptest::num::f64::NORMAL | proptest::num::f64::ZERO, 1..9),
    ) {
        let (a, b) = (sample(&a), sample(&b));
        let criteria = Criteria { margin: Margin::percent(0.0)?, ..Criteria::new(Direction::HigherIsBetter) };
        let _ = compare(&a, &b, &criteria);
        let _ = ratio_of_means(&a, &b, Confidence::P99);
        let _ = median_interval_serial(&a, Confidence::P90);
        let paired = compare_paired(&a, &b, &criteria);
        prop_assert_eq!(matches!(paired, Err(Error::LengthsDiffer { .. })), a.len() != b.len());
    }
}

#[test]
fn the_hodges_lehmann_effect_of_a_constant_is_the_constant() {
    let constant = sample(&[0.1; 9]);
    let estimate = hodges_lehmann_interval(&constant, Confidence::P95).unwrap();
    assert_eq!((estimate.value, estimate.interval.lo, estimate.interval.hi), (0.1, 0.1, 0.1));
}

#[test]
fn a_shift_of_a_thousand_against_a_thousand_is_exact() {
    let a: Vec<f64> = (0..1_000).map(|i| f64::from(i * 7919 % 1_000)).collect();
    let b = mapped(&a, |value| value + 3.0);
    let estimate = shift_interval(&sample(&a), &b, Confidence::P95).unwrap();
    assert_eq!(estimate.value, 3.0);
    assert!(estimate.interval.contains(3.0) && estimate.interval.width() < 60.0, "{estimate:?}");
}
