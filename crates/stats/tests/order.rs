//! Verdicts on numbers in order: the rate of false ones, and the power that independent numbers
//! keep.

mod process;

use numalab_stats::{
    Comparison, Criteria, Direction, Ground, Rng, Sample, Verdict, compare, compare_in_order,
};
use process::{autoregressive, repeats, share, slack};

/// Times of about 100 with a spread of 5 %.
fn times(n: usize, phi: f64, shift: f64, rng: &mut Rng) -> Sample {
    let values = autoregressive(n, phi, rng).into_iter();
    Sample::new(values.map(|x| 100.0 * (0.05 * (x + shift)).exp()).collect::<Vec<_>>()).unwrap()
}

fn is_different(found: &Comparison) -> bool {
    matches!(found.verdict, Verdict::Better | Verdict::Worse)
}

/// Returns the shares of verdicts with and without the order, for samples of `n` that are `shift`
/// spreads apart.
fn shares(n: usize, phi: f64, shift: f64) -> (f64, f64) {
    let criteria = Criteria::new(Direction::LowerIsBetter);
    let repeats = repeats(1_000);
    let mut apart = 0.0;
    let ordered = share(repeats, |rng| {
        let (a, b) = (times(n, phi, 0.0, rng), times(n, phi, shift, rng));
        apart += f64::from(is_different(&compare(&a, &b, &criteria))) / f64::from(repeats);
        is_different(&compare_in_order(&a, &b, &criteria).0)
    });
    println!(
        "n {n}, dependence {phi}, shift {shift}: {:.1} % (without order {:.1} %)",
        100.0 * ordered,
        100.0 * apart
    );
    (ordered, apart)
}

#[test]
fn verdicts_where_nothing_differs_are_6_percent_at_most_at_any_dependence() {
    for phi in [0.0, 0.3, 0.54, 0.7] {
        let (ordered, apart) = shares(20, phi, 0.0);
        assert!(ordered < 0.05 + slack(repeats(1_000)) / 2.0, "{phi}: {ordered}");
        assert!(phi == 0.0 || apart > 0.1, "{phi}: {apart}");
    }
}

#[test]
fn independent_numbers_keep_nine_tenths_of_their_power() {
    for (n, shift) in [(20, 1.0), (40, 0.7)] {
        let (ordered, apart) = shares(n, 0.0, shift);
        assert!(ordered > 0.9 * apart, "{n}: {ordered} of {apart}");
    }
}

#[test]
fn numbers_that_drift_are_not_decided() {
    let criteria = Criteria::new(Direction::LowerIsBetter);
    let rising = Sample::new((0..20).map(|i| 100.0 + f64::from(i)).collect::<Vec<_>>()).unwrap();
    let steady = times(20, 0.0, -3.0, &mut Rng::new(1));
    let (found, order) = compare_in_order(&rising, &steady, &criteria);
    assert!(order.drifts() && is_different(&compare(&rising, &steady, &criteria)));
    assert_eq!(found.ground, Ground::Drifts);
    assert_eq!(found.verdict, Verdict::Inconclusive { further_blocks: None });
}
