//! A/A trials on traces of real machines: the differences that a study finds where there are none.
//!
//! The traces are hundreds of runs of one command in succession on a machine that drifts
//! (`samples/trace-*.txt` of the corpus that `NUMALAB_CORPUS` names).

use std::path::PathBuf;

use numalab_stats::{
    Alternative, Criteria, Direction, Draws, Rng, Sample, Verdict, compare_paired,
    paired_differences, paired_permutation, rank_sum, signed_rank,
};
/// Returns the number of repeats of a simulation: ten times more with `NUMALAB_LONG=1`.
fn repeats(short: u32) -> u32 {
    let long = std::env::var_os("NUMALAB_LONG").is_some_and(|long| long == "1");
    if long { 10 * short } else { short }
}

const TRACES: [&str; 3] = ["memset", "pipe", "sbmem"];

/// Reads a trace; returns `None`, with a message on stderr, if there is no corpus.
fn trace(name: &str) -> Option<Vec<f64>> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");
    let corpus = std::env::var_os("NUMALAB_CORPUS").unwrap_or_else(|| default.into());
    let file = PathBuf::from(corpus).join(format!("samples/trace-{name}.txt"));
    let Ok(text) = std::fs::read_to_string(&file) else {
        eprintln!("NOT RUN: no {}: set NUMALAB_CORPUS", file.display());
        return None;
    };
    Some(text.split_whitespace().map(|word| word.parse().expect(word)).collect())
}

/// Returns a stretch of `n` values that begins at a random place.
fn stretch<'a>(trace: &'a [f64], n: usize, rng: &mut Rng) -> &'a [f64] {
    let starts = (trace.len() - n + 1) as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below the length")]
    let start = (rng.uniform() * starts) as usize;
    &trace[start..start + n]
}

/// Returns blocks of two neighbours in random order: an A/A study.
fn blocks(trace: &[f64], rng: &mut Rng) -> (Sample, Sample) {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for pair in trace.chunks_exact(2) {
        let turned = rng.next_u64() & 1 == 1;
        a.push(pair[usize::from(turned)]);
        b.push(pair[usize::from(!turned)]);
    }
    (Sample::new(a).unwrap(), Sample::new(b).unwrap())
}

/// Returns the share of repeats in which `found` reports a difference.
fn share(
    trace: &[f64],
    n: usize,
    repeats: u32,
    mut found: impl FnMut(&[f64], &mut Rng) -> bool,
) -> f64 {
    let mut rng = Rng::new(20_261_122);
    let hits = (0..repeats).filter(|_| {
        let values = stretch(trace, n, &mut rng).to_vec();
        found(&values, &mut rng)
    });
    hits.count() as f64 / f64::from(repeats)
}

#[test]
fn random_blocks_find_a_false_difference_in_3_to_6_percent() {
    let repeats = repeats(2_000);
    for name in TRACES {
        let Some(trace) = trace(name) else { return };
        for pairs in [10, 12, 20] {
            let found = share(&trace, 2 * pairs, repeats, |values, rng| {
                let (a, b) = blocks(values, rng);
                let logs = (a.logs().unwrap(), b.logs().unwrap());
                let differences = paired_differences(&logs.0, &logs.1).unwrap();
                signed_rank(&differences, Alternative::TwoSided).p <= 0.05
            });
            println!("{name}, {pairs} blocks: {:.1} %", 100.0 * found);
            assert!((0.03..=0.06).contains(&found), "{name}, {pairs} blocks: {found}");
        }
    }
}

#[test]
fn verdicts_on_random_blocks_are_wrong_in_6_percent_at_most() {
    let repeats = repeats(300);
    let criteria = Criteria::new(Direction::LowerIsBetter);
    for name in TRACES {
        let Some(trace) = trace(name) else { return };
        let found = share(&trace, 24, repeats, |values, rng| {
            let (a, b) = blocks(values, rng);
            let verdict = compare_paired(&a, &b, &criteria).unwrap().verdict;
            matches!(verdict, Verdict::Better | Verdict::Worse)
        });
        println!("{name}, verdicts, 12 blocks: {:.1} %", 100.0 * found);
        assert!(found <= 0.06, "{name}: {found}");
    }
}

#[test]
fn the_permutation_test_finds_one_in_3_to_6_percent_too() {
    let repeats = repeats(1_500);
    for name in TRACES {
        let Some(trace) = trace(name) else { return };
        let found = share(&trace, 24, repeats, |values, rng| {
            let (a, b) = blocks(values, rng);
            let differences = paired_differences(&a.logs().unwrap(), &b.logs().unwrap()).unwrap();
            let draws = Draws { draws: 999, seed: 1 };
            paired_permutation(&differences, Alternative::TwoSided, &draws).p <= 0.05
        });
        println!("{name}, permutation, 12 blocks: {:.1} %", 100.0 * found);
        assert!((0.03..=0.06).contains(&found), "{name}: {found}");
    }
}

/// Justifies the blocks of studies: on the same traces, the usual order finds changes that are not
/// there.
#[test]
fn all_of_one_and_then_all_of_the_other_finds_far_more() {
    for name in ["memset", "sbmem"] {
        let Some(trace) = trace(name) else { return };
        let found = share(&trace, 40, 150, |values, _| {
            let (a, b) = values.split_at(20);
            let (a, b) = (Sample::new(a).unwrap(), Sample::new(b).unwrap());
            rank_sum(&a, &b, Alternative::TwoSided).p <= 0.05
        });
        println!("{name}, one after the other: {:.1} %", 100.0 * found);
        assert!(found > 0.15, "{name}: {found}");
    }
}
