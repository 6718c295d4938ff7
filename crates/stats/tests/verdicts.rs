//! The answers of whole comparisons, including defined answers for unusual input.

use numalab_stats::{
    Comparison, Criteria, Design, Direction, Error, Ground, Margin, Sample, Scale, Verdict,
    adjust_verdicts, compare, compare_paired, gate,
};

fn sample(values: &[f64]) -> Sample {
    Sample::new(values).unwrap()
}

fn times() -> Criteria {
    Criteria::new(Direction::LowerIsBetter)
}

fn paired(baseline: &[f64], candidate: &[f64]) -> Comparison {
    compare_paired(&sample(baseline), &sample(candidate), &times()).unwrap()
}

fn unpaired(baseline: &[f64], candidate: &[f64]) -> Comparison {
    compare(&sample(baseline), &sample(candidate), &times())
}

/// Ten blocks of a machine that slows down by half while it runs, with noise of one percent.
const DRIFTING: [f64; 10] = [10.0, 10.6, 11.0, 11.4, 12.1, 12.6, 13.2, 13.5, 14.1, 14.6];
const NOISE: [f64; 10] = [0.99, 1.01, 1.0, 1.005, 0.995, 0.998, 1.008, 0.992, 1.003, 0.997];

fn times_factor(factor: f64) -> Vec<f64> {
    DRIFTING.iter().zip(NOISE).map(|(value, noise)| value * factor * noise).collect()
}

#[test]
fn pairs_see_through_drift_that_hides_the_effect_from_unpaired_samples() {
    let faster = times_factor(0.9);
    let found = paired(&DRIFTING, &faster);
    assert_eq!((found.verdict, found.ground), (Verdict::Better, Ground::Tested));
    assert!((found.percent().unwrap() + 10.0).abs() < 0.5, "{found:?}");
    assert!(found.percent_interval().unwrap().contains(-10.0));
    let found = unpaired(&DRIFTING, &faster);
    assert!(matches!(found.verdict, Verdict::Inconclusive { further_blocks: Some(n) } if n > 10));
}

#[test]
fn the_direction_exchanges_better_and_worse() {
    let bandwidth = Criteria::new(Direction::HigherIsBetter);
    let (baseline, candidate) = (sample(&DRIFTING), sample(&times_factor(0.9)));
    let found = compare_paired(&baseline, &candidate, &bandwidth).unwrap();
    assert_eq!(found.verdict, Verdict::Worse);
}

#[test]
fn no_effect_is_equivalent_within_the_margin_and_inconclusive_within_a_narrow_one() {
    let same = times_factor(1.0);
    assert_eq!(paired(&DRIFTING, &same).verdict, Verdict::Equivalent);
    let narrow = Criteria { margin: Margin::percent(0.1).unwrap(), ..times() };
    let found = compare_paired(&sample(&DRIFTING), &sample(&same), &narrow).unwrap();
    assert!(matches!(found.verdict, Verdict::Inconclusive { .. }), "{found:?}");
}

#[test]
fn one_block_is_inconclusive_and_needs_five_more() {
    let found = paired(&[10.0], &[5.0]);
    assert_eq!(found.verdict, Verdict::Inconclusive { further_blocks: Some(5) });
    assert_eq!(found.ground, Ground::TooFew { needed: 6 });
    assert_eq!((found.interval, found.least_p), (None, 1.0));
    let found = unpaired(&[10.0], &[5.0]);
    assert_eq!(found.verdict, Verdict::Inconclusive { further_blocks: Some(3) });
    assert!((found.percent().unwrap() + 50.0).abs() < 1e-9);
}

#[test]
fn five_blocks_cannot_show_a_difference_however_large() {
    let found = paired(&[10.0, 11.0, 12.0, 13.0, 14.0], &[1.0, 1.2, 1.1, 1.3, 1.2]);
    assert_eq!(found.verdict, Verdict::Inconclusive { further_blocks: Some(1) });
    assert_eq!(found.least_p, 0.0625);
    let six = paired(&[10.0, 11.0, 12.0, 13.0, 14.0, 15.0], &[1.0, 1.2, 1.1, 1.3, 1.2, 1.0]);
    assert_eq!(six.verdict, Verdict::Better);
}

#[test]
fn values_without_variance_are_compared_directly() {
    let found = paired(&[100.0; 3], &[90.0; 3]);
    assert_eq!((found.verdict, found.ground), (Verdict::Better, Ground::NoVariance));
    assert_eq!(paired(&[100.0; 3], &[100.0; 3]).verdict, Verdict::Equivalent);
    assert_eq!(paired(&[100.0; 3], &[101.0; 3]).verdict, Verdict::Equivalent);
    assert_eq!(unpaired(&[100.0; 4], &[110.0; 3]).verdict, Verdict::Worse);
    let two = unpaired(&[100.0; 2], &[110.0; 2]);
    assert_eq!(two.ground, Ground::TooFew { needed: 4 });
}

#[test]
fn a_sample_against_itself_is_equivalent() {
    let found = paired(&DRIFTING, &DRIFTING);
    assert_eq!((found.verdict, found.effect), (Verdict::Equivalent, 0.0));
    let itself = unpaired(&NOISE, &NOISE);
    assert_eq!((itself.verdict, itself.difference.p), (Verdict::Equivalent, 1.0));
}

#[test]
fn ties_on_a_coarse_clock_are_tested_exactly() {
    let found = paired(&[3.0, 3.0, 3.0, 4.0, 4.0, 3.0, 4.0], &[2.0, 2.0, 3.0, 3.0, 3.0, 2.0, 3.0]);
    // Six differences of one sign and a zero, which is dropped: 2 / 2^6.
    assert_eq!(found.difference.p, 2.0 / 64.0);
    assert_eq!(found.verdict, Verdict::Better);
    // With two more zeros the interval of the effect reaches zero, and the two must agree.
    let found = paired(
        &[3.0, 3.0, 3.0, 4.0, 4.0, 3.0, 4.0, 2.0, 2.0],
        &[2.0, 2.0, 3.0, 3.0, 3.0, 2.0, 3.0, 2.0, 2.0],
    );
    assert_eq!(found.difference.p, 2.0 / 64.0);
    assert!(matches!(found.verdict, Verdict::Inconclusive { .. }), "{found:?}");
}

#[test]
fn zeros_are_compared_by_differences_and_all_zeros_are_equivalent() {
    let found = unpaired(&[0.0, 5.0, 4.0, 6.0, 5.5], &[40.0, 44.0, 41.0, 45.0, 43.0]);
    assert_eq!((found.scale, found.verdict), (Scale::Difference, Verdict::Worse));
    assert!((found.percent().unwrap() - 100.0 * found.effect / 5.0).abs() < 1e-12);
    let nothing = unpaired(&[0.0; 5], &[0.0; 5]);
    assert_eq!((nothing.verdict, nothing.percent()), (Verdict::Equivalent, None));
    assert_eq!(nothing.ratio_of_means, None);
    let from_nothing = unpaired(&[0.0; 5], &[7.0; 5]);
    assert_eq!((from_nothing.verdict, from_nothing.ratio_of_means), (Verdict::Worse, None));
}

#[test]
fn the_margin_of_negative_values_is_a_share_of_their_size() {
    let baseline = [-100.0, -101.0, -99.0, -100.5, -99.5, -100.2];
    let found = unpaired(&baseline, &baseline.map(|value| value + 0.1));
    assert_eq!((found.scale, found.verdict), (Scale::Difference, Verdict::Equivalent));
    assert!((found.percent().unwrap() - 0.1).abs() < 0.001, "{found:?}");
}

#[test]
fn holm_withdraws_a_verdict_that_one_of_many_metrics_gave_by_chance() {
    let barely = paired(&[10.0, 10.0, 10.0, 10.0, 10.0, 10.0], &[9.0, 8.9, 9.2, 8.8, 9.1, 9.3]);
    assert_eq!((barely.verdict, barely.difference.p), (Verdict::Better, 2.0 / 64.0));
    let nothing = paired(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[1.2, 1.9, 3.3, 3.7, 5.2, 5.9]);
    let mut metrics = [barely.clone(), nothing];
    adjust_verdicts(&mut metrics);
    assert!(matches!(metrics[0].verdict, Verdict::Inconclusive { .. }));
    adjust_verdicts(&mut metrics[..1]);
    assert_eq!(metrics[0].verdict, Verdict::Better);
}

#[test]
fn blocks_that_are_enough_for_one_metric_are_too_few_for_eight() {
    let baseline = [10.0; 6];
    let barely = paired(&baseline, &[9.0, 8.9, 9.2, 8.8, 9.1, 9.3]);
    assert_eq!((barely.verdict, barely.ground), (Verdict::Better, Ground::Tested));
    let mut eight = vec![barely; 8];
    adjust_verdicts(&mut eight);
    // 2 / 2^n must reach 0.05 / 8.
    assert!(eight.iter().all(|found| found.ground == Ground::TooFew { needed: 9 }), "{eight:?}");
    let needed = Verdict::Inconclusive { further_blocks: Some(3) };
    assert!(eight.iter().all(|found| found.verdict == needed), "{:?}", eight[0].verdict);
}

#[test]
fn the_noise_floor_is_the_effect_that_an_a_a_arm_would_show() {
    let found = paired(&DRIFTING, &times_factor(1.0));
    let floor = found.least_detectable_percent().unwrap();
    assert!((0.2..1.5).contains(&floor), "{floor}");
    let effect = 1.0 - 3.0 * floor / 100.0;
    assert_eq!(paired(&DRIFTING, &times_factor(effect)).verdict, Verdict::Better);
}

#[test]
fn blocks_without_a_partner_are_refused() {
    let refused = compare_paired(&sample(&[1.0, 2.0]), &sample(&[1.0]), &times());
    assert_eq!(refused.unwrap_err(), Error::LengthsDiffer { left: 2, right: 1 });
}

#[test]
fn the_design_records_the_numbers_of_values() {
    let found = unpaired(&[1.0, 2.0, 3.0], &[1.0, 2.0]);
    assert_eq!(found.design, Design::Unpaired { baseline: 3, candidate: 2 });
    assert_eq!(paired(&[1.0], &[2.0]).design, Design::Paired { blocks: 1 });
}

/// Returns six blocks of a metric, each with approximately this effect.
fn six_blocks(effect: f64) -> Comparison {
    let baseline = Sample::new(vec![1.0; 6]).unwrap();
    let values: Vec<f64> = (0..6).map(|i| (effect + 0.002 * f64::from(i)).exp()).collect();
    let criteria = Criteria::new(Direction::LowerIsBetter);
    compare_paired(&baseline, &Sample::new(values).unwrap(), &criteria).unwrap()
}

/// Adjusts both, and withholds what the primary metrics do not permit.
fn in_order(primary: &mut [Comparison], rest: &mut [Comparison]) {
    adjust_verdicts(primary);
    adjust_verdicts(rest);
    gate(primary, rest);
}

#[test]
fn six_blocks_decide_the_primary_metric_however_many_others_there_are() {
    let mut all: Vec<_> = (0..8).map(|_| six_blocks(-0.5)).collect();
    adjust_verdicts(&mut all);
    assert!(all.iter().all(|found| matches!(found.verdict, Verdict::Inconclusive { .. })));
    let (mut primary, mut rest) = (vec![six_blocks(-0.5)], vec![six_blocks(-0.5); 7]);
    in_order(&mut primary, &mut rest);
    assert_eq!(primary[0].verdict, Verdict::Better);
    assert!(rest.iter().all(|found| matches!(found.verdict, Verdict::Inconclusive { .. })));
}

#[test]
fn metrics_that_explain_are_not_decided_before_the_one_that_answers() {
    let undecided = {
        let (low, high) = (vec![1.0; 6], vec![0.8, 1.3, 0.9, 1.2, 0.7, 1.4]);
        let criteria = Criteria::new(Direction::LowerIsBetter);
        compare_paired(&Sample::new(low).unwrap(), &Sample::new(high).unwrap(), &criteria).unwrap()
    };
    let (mut primary, mut rest) = (vec![undecided], vec![six_blocks(-0.5)]);
    in_order(&mut primary, &mut rest);
    assert_eq!(rest[0].ground, Ground::Gated);
    assert!(matches!(rest[0].verdict, Verdict::Inconclusive { .. }));
}

/// With either decision as the key, 6.0 % of studies in which nothing differs reported a difference.
#[test]
fn an_equivalent_primary_metric_does_not_open_differences_of_the_rest() {
    let (mut primary, mut rest) = (vec![six_blocks(0.0)], vec![six_blocks(-0.5)]);
    in_order(&mut primary, &mut rest);
    assert_eq!((primary[0].verdict, rest[0].ground), (Verdict::Equivalent, Ground::Gated));
    assert!(matches!(rest[0].verdict, Verdict::Inconclusive { .. }));
    let mut equal = vec![six_blocks(0.0)];
    in_order(&mut primary, &mut equal);
    assert_eq!(equal[0].verdict, Verdict::Equivalent);
}

#[test]
fn an_interval_widened_to_that_of_equals_withdraws_a_verdict_it_no_longer_supports() {
    let sample = |values: Vec<f64>| Sample::new(values).unwrap();
    let base: Vec<f64> = (0..12).map(|i| 100.0 + f64::from(i) / 10.0).collect();
    let times = |factor: f64| sample(base.iter().map(|value| value * factor).collect());
    let criteria = Criteria::new(Direction::LowerIsBetter);
    let noisy = base.iter().zip([1.0, 1.1].iter().cycle()).map(|(value, factor)| value * factor);
    let noisy = sample(noisy.collect());
    let equals = compare_paired(&times(1.0), &noisy, &criteria).unwrap();
    let reach = equals.interval.unwrap().hi;
    let jitter = base.iter().zip([0.9, 0.91].iter().cycle()).map(|(value, factor)| value * factor);
    let mut found = compare_paired(&times(1.0), &sample(jitter.collect()), &criteria).unwrap();
    assert_eq!(found.verdict, Verdict::Better);
    found.widen_to(&equals);
    let interval = found.interval.unwrap();
    assert!(interval.hi >= found.effect + reach && interval.lo <= found.effect - reach);
    let stands = interval.hi < 0.0;
    assert_eq!(found.verdict == Verdict::Better, stands, "{interval:?}");
    // A change that is larger than the difference of equals keeps its verdict.
    let jitter = base.iter().zip([0.5, 0.51].iter().cycle()).map(|(value, factor)| value * factor);
    let mut large = compare_paired(&times(1.0), &sample(jitter.collect()), &criteria).unwrap();
    large.widen_to(&equals);
    assert_eq!(large.verdict, Verdict::Better);
}

#[test]
fn the_blocks_that_would_decide_are_those_of_the_widened_interval() {
    let sample = |values: Vec<f64>| Sample::new(values).unwrap();
    let factors = |low: f64, high: f64| -> Vec<f64> {
        (0..12).map(|at| 100.0 * if at % 2 == 0 { low } else { high }).collect()
    };
    let criteria = Criteria::new(Direction::LowerIsBetter);
    let base = sample(factors(1.0, 1.0));
    let paired = |low, high| compare_paired(&base, &sample(factors(low, high)), &criteria).unwrap();
    let further = |found: &Comparison| match found.verdict {
        Verdict::Inconclusive { further_blocks } => further_blocks,
        decided => panic!("{decided:?}"),
    };
    let mut open = paired(0.95, 1.02);
    let before = further(&open).expect("more blocks would decide");
    open.widen_to(&paired(0.8, 1.2));
    assert!(further(&open).is_none_or(|after| after > 2 * before), "{before}, {open:?}");
    // A verdict that the wider interval withdraws needs more blocks, too.
    let mut shown = paired(0.9, 0.91);
    shown.widen_to(&paired(0.85, 1.15));
    assert!(further(&shown).is_some_and(|after| after > 1), "{shown:?}");
}

#[test]
fn metrics_that_are_always_zero_are_equivalent_on_a_shared_machine_too() {
    let zeros = Sample::new(vec![0.0; 8]).unwrap();
    let criteria = Criteria::new(Direction::LowerIsBetter);
    let mut found = compare_paired(&zeros, &zeros, &criteria).unwrap();
    assert_eq!(found.verdict, Verdict::Equivalent);
    found.widen_to(&found.clone());
    assert_eq!(found.verdict, Verdict::Equivalent);
}
