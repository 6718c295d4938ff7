//! A/A trials: the rate at which a difference is "found" where there is none, on machines that
//! drift.

mod process;

use numalab_stats::{
    Alternative, Criteria, Direction, Margin, Rng, Sample, Verdict, adjust_verdicts,
    compare_paired, paired_differences, rank_sum, signed_rank,
};
use process::{autoregressive, normal, repeats, share, slack};

/// Times of a machine that has a wandering speed (lag-1 correlation 0.95), becomes slowly slower,
/// and has separate noise per run, like the traces on which block order finds a difference in half
/// of all trials.
fn drifting(n: usize, rng: &mut Rng) -> Vec<f64> {
    let wander = autoregressive(n, 0.95, rng);
    let sink = 0.5 * normal(rng) / n as f64;
    let of = |(index, wander): (usize, &f64)| {
        (4.0 + 0.02 * wander + 0.05 * sink * index as f64 + 0.01 * normal(rng)).exp()
    };
    wander.iter().enumerate().map(of).collect()
}

/// Splits a trace into blocks of two, with the order in each block at random.
fn paired_blocks(trace: &[f64], rng: &mut Rng) -> (Sample, Sample) {
    let dealt: Vec<(f64, f64)> = trace
        .chunks_exact(2)
        .map(
            |block| {
                if rng.next_u64() & 1 == 0 { (block[0], block[1]) } else { (block[1], block[0]) }
            },
        )
        .collect();
    let (a, b): (Vec<f64>, Vec<f64>) = dealt.into_iter().unzip();
    (Sample::new(a).unwrap(), Sample::new(b).unwrap())
}

#[test]
fn all_of_one_and_then_all_of_the_other_finds_differences_that_do_not_exist() {
    let found = share(repeats(2_000), |rng| {
        let trace = drifting(40, rng);
        let (a, b) = trace.split_at(20);
        let (a, b) = (Sample::new(a).unwrap(), Sample::new(b).unwrap());
        rank_sum(&a, &b, Alternative::TwoSided).p <= 0.05
    });
    println!("block order, rank sum: {:.1} %", 100.0 * found);
    assert!(found > 0.3, "{found}");
}

#[test]
fn random_pairs_find_them_in_3_to_6_percent() {
    let repeats = repeats(4_000);
    for blocks in [10, 12, 20] {
        let found = share(repeats, |rng| {
            let (a, b) = paired_blocks(&drifting(2 * blocks, rng), rng);
            let differences = paired_differences(&a.logs().unwrap(), &b.logs().unwrap()).unwrap();
            signed_rank(&differences, Alternative::TwoSided).p <= 0.05
        });
        println!("random pairs, signed rank, {blocks} blocks: {:.1} %", 100.0 * found);
        assert!(found > 0.03 && found < 0.05 + slack(repeats), "{blocks}: {found}");
    }
}

#[test]
fn verdicts_on_pairs_are_wrong_in_5_percent_at_most() {
    let repeats = repeats(2_000);
    let criteria = Criteria::new(Direction::LowerIsBetter);
    for blocks in [6, 10, 20] {
        let found = share(repeats, |rng| {
            let (a, b) = paired_blocks(&drifting(2 * blocks, rng), rng);
            let verdict = compare_paired(&a, &b, &criteria).unwrap().verdict;
            matches!(verdict, Verdict::Better | Verdict::Worse)
        });
        println!("verdicts on pairs, {blocks} blocks: {:.1} %", 100.0 * found);
        assert!(found < 0.05 + slack(repeats), "{blocks}: {found}");
    }
}

/// The plan for "inconclusive" is honest if most studies that follow it get an answer.
#[test]
fn the_further_blocks_needed_are_enough_in_about_80_percent() {
    let criteria = Criteria::new(Direction::LowerIsBetter);
    // A pilot with the log ratios that twelve normal ones have on average, with mean 0.03 and
    // standard deviation 0.07.
    let scores = [-1.629, -1.116, -0.793, -0.537, -0.312, -0.103];
    let log_ratios = scores.iter().flat_map(|z| [0.03 + 0.07 * z, 0.03 - 0.07 * z]);
    let pilot = Sample::new(log_ratios.map(f64::exp).collect::<Vec<_>>()).unwrap();
    let found = compare_paired(&Sample::new(vec![1.0; 12]).unwrap(), &pilot, &criteria).unwrap();
    let Verdict::Inconclusive { further_blocks: Some(further) } = found.verdict else {
        panic!("the pilot must be inconclusive: {found:?}");
    };
    let blocks = 12 + further;
    let found = share(repeats(1_000), |rng| {
        let log_ratios = (0..blocks).map(|_| (0.03 + 0.07 * normal(rng)).exp());
        let candidate = Sample::new(log_ratios.collect::<Vec<_>>()).unwrap();
        let baseline = Sample::new(vec![1.0; blocks]).unwrap();
        compare_paired(&baseline, &candidate, &criteria).unwrap().verdict == Verdict::Worse
    });
    println!("power with the {blocks} blocks planned: {:.1} %", 100.0 * found);
    assert!((0.72..0.92).contains(&found), "{blocks} blocks: {found}");
}

/// Eight metrics that all change by the margin: none is equivalent. Before, 26 to 34 % of such
/// trials found one.
#[test]
fn a_false_equivalent_among_eight_metrics_is_as_rare_as_among_one() {
    let repeats = repeats(200);
    let margin = Margin::percent(2.0).unwrap();
    let criteria = Criteria { margin, ..Criteria::new(Direction::LowerIsBetter) };
    let is_equivalent = |found: &numalab_stats::Comparison| found.verdict == Verdict::Equivalent;
    for blocks in [12, 20] {
        let mut plain = 0_u32;
        let adjusted = share(repeats, |rng| {
            let metric = |_| {
                let ratio = || (1.02_f64.ln() + 0.01 * normal(rng)).exp();
                let candidate: Vec<f64> = std::iter::repeat_with(ratio).take(blocks).collect();
                let baseline = Sample::new(vec![1.0; blocks]).unwrap();
                compare_paired(&baseline, &Sample::new(candidate).unwrap(), &criteria).unwrap()
            };
            let mut eight: Vec<_> = (0..8).map(metric).collect();
            plain += u32::from(eight.iter().any(is_equivalent));
            adjust_verdicts(&mut eight);
            eight.iter().any(is_equivalent)
        });
        let plain = 100.0 * f64::from(plain) / f64::from(repeats);
        println!("{blocks} blocks: {:.1} % adjusted, {plain:.1} % not", 100.0 * adjusted);
        assert!(adjusted < 0.05 + slack(repeats) && plain > 20.0, "{blocks}: {adjusted}");
    }
}
