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

/// A process of values near 100 whose long memory neighbours do not show.
#[derive(Clone, Copy, Debug)]
enum Memory {
    /// One of two modes, 10 % apart, left with this probability at each value.
    Sticky(f64),
    /// A slow process of this lag-1 correlation, and white noise of the same size.
    SlowAndWhite(f64),
    /// A random walk, with white noise ten times its step.
    Walk,
    /// A drift of this number of standard deviations over both samples.
    Drift(f64),
}

/// Returns two samples taken one after the other from one process.
fn one_after_the_other(n: usize, memory: Memory, rng: &mut Rng) -> [Sample; 2] {
    let slow = match memory {
        Memory::SlowAndWhite(phi) => autoregressive(2 * n, phi, rng),
        _ => vec![0.0; 2 * n],
    };
    let (mut mode, mut walk) = (rng.uniform() < 0.5, 0.0);
    let mut value = |at: usize| {
        let own = process::normal(rng);
        let x = match memory {
            Memory::Sticky(leave) => {
                mode ^= rng.uniform() < leave;
                own + if mode { 2.0 } else { 0.0 }
            }
            Memory::SlowAndWhite(_) => own + slow[at],
            Memory::Walk => {
                walk += 0.1 * process::normal(rng);
                own + walk
            }
            Memory::Drift(size) => own + size * at as f64 / (2 * n) as f64,
        };
        100.0 * (0.05 * x).exp()
    };
    let all: Vec<f64> = (0..2 * n).map(&mut value).collect();
    [&all[..n], &all[n..]].map(|half| Sample::new(half.to_vec()).unwrap())
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
fn independent_numbers_keep_seven_tenths_of_their_power() {
    for (n, shift) in [(20, 1.0), (40, 0.7)] {
        let (ordered, apart) = shares(n, 0.0, shift);
        assert!(ordered > 0.7 * apart, "{n}: {ordered} of {apart}");
    }
}

/// Returns the shares of pairs that are reported as different and as drifting.
fn claims(n: usize, memory: Memory) -> [f64; 2] {
    let criteria = Criteria::new(Direction::LowerIsBetter);
    let repeats = repeats(250);
    let mut drifts = 0.0;
    let different = share(repeats, |rng| {
        let [a, b] = one_after_the_other(n, memory, rng);
        let (found, order) = compare_in_order(&a, &b, &criteria);
        drifts += f64::from(u8::from(order.drifts())) / f64::from(repeats);
        is_different(&found)
    });
    println!(
        "n {n}, {memory:?}: {:.1} % different, {:.1} % drift",
        100.0 * different,
        100.0 * drifts
    );
    [different, drifts]
}

/// No rule detects a state that lasts as long as a sample, so the bounds for the last three are weaker.
#[test]
fn memory_that_neighbours_do_not_show_is_a_difference_in_few_pairs() {
    let cases = [
        (40, Memory::Sticky(0.1), 0.05),
        (40, Memory::SlowAndWhite(0.9), 0.05),
        (200, Memory::SlowAndWhite(0.97), 0.05),
        (20, Memory::SlowAndWhite(0.9), 0.15),
        (40, Memory::Sticky(0.02), 0.15),
        (40, Memory::Walk, 0.2),
    ];
    for (n, memory, most) in cases {
        let [different, _] = claims(n, memory);
        assert!(different <= most + slack(repeats(250)) / 2.0, "{n}, {memory:?}: {different}");
    }
}

#[test]
fn a_drift_of_two_standard_deviations_within_each_sample_is_flagged() {
    let [_, flagged] = claims(40, Memory::Drift(4.0));
    assert!(flagged >= 0.95, "{flagged}");
    let [_, false_alarms] = claims(40, Memory::Drift(0.0));
    assert!(false_alarms <= 0.04, "{false_alarms}");
}

#[test]
fn five_values_a_side_claim_nothing() {
    let criteria = Criteria::new(Direction::LowerIsBetter);
    let mut rng = Rng::new(5);
    let (a, b) = (times(5, 0.0, 0.0, &mut rng), times(5, 0.0, 30.0, &mut rng));
    assert!(is_different(&compare(&a, &b, &criteria)), "independent values show it");
    let (found, _) = compare_in_order(&a, &b, &criteria);
    assert_eq!(found.ground, Ground::TooFewInOrder { needed: 10 });
    assert_eq!(found.verdict, Verdict::Inconclusive { further_blocks: Some(5) });
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
