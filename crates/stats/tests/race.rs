//! The rate at which a race puts out the best candidate, and the runs it saves, over hundreds of
//! simulated trials on a machine that drifts.

mod process;

use numalab_stats::{Confidence, Direction, Margin, Out, Race, Rng};
use process::{Noise, autoregressive, repeats, slack};

const BLOCKS: usize = 12;
const SPREAD: f64 = 0.02;

/// Runs trials of candidates that take `changes` longer than the baseline, as log ratios. Returns
/// the positions of the candidates that were eliminated, and the number of runs of candidates.
fn raced(changes: &[f64], noise: Noise, rng: &mut Rng) -> (Vec<usize>, usize) {
    let ends = (Direction::LowerIsBetter, Confidence::P95);
    let race = Race::new(changes.len(), BLOCKS, Margin::TWO_PERCENT, ends).unwrap();
    let drift = autoregressive(BLOCKS, 0.8, rng);
    let mut columns = vec![Vec::new(); changes.len() + 1];
    let (mut out, mut runs): (Vec<usize>, usize) = (Vec::new(), 0);
    for together in drift {
        for (at, column) in columns.iter_mut().enumerate() {
            if at > 0 && out.contains(&(at - 1)) {
                continue;
            }
            let change = if at == 0 { 0.0 } else { changes[at - 1] };
            column.push((change + 0.1 * together + SPREAD * noise.draw(rng)).exp());
            runs += usize::from(at > 0);
        }
        out.extend(race.out(&columns).into_iter().map(|(at, _): (usize, Out)| at - 1));
    }
    (out, runs)
}

/// Returns the rate at which the candidate at position 0 is eliminated.
fn best_is_out(changes: &[f64], noise: Noise) -> f64 {
    let repeats = repeats(600);
    process::share(repeats, |rng| raced(changes, noise, rng).0.contains(&0))
}

#[test]
fn the_best_candidate_is_dropped_no_more_often_than_the_level_allows() {
    // Equal to the next one, or to the margin: the cases in which it is eliminated most easily.
    let margin = -Margin::TWO_PERCENT.as_log();
    for changes in [&[-0.05, -0.05, -0.05, -0.05][..], &[margin, margin], &[margin]] {
        for noise in Noise::ALL {
            let share = best_is_out(changes, noise);
            println!("{changes:.3?}, {noise:?}: put out in {:.1} %", 100.0 * share);
            assert!(share <= 0.05 + slack(repeats(600)), "{changes:?}, {noise:?}: {share}");
        }
    }
}

#[test]
fn candidates_that_are_far_behind_are_put_out_after_half_of_their_runs() {
    let changes = [-0.2, 0.0, 0.2, 0.3];
    let repeats = repeats(400);
    for noise in [Noise::Normal, Noise::HeavyTailed, Noise::Skewed] {
        let (mut runs, mut all_out) = (0, 0);
        for seed in 0..repeats {
            let (out, taken) = raced(&changes, noise, &mut Rng::new(u64::from(seed) + 1));
            runs += taken;
            all_out += usize::from([1, 2, 3].iter().all(|at| out.contains(at)));
        }
        let part = runs as f64 / f64::from(repeats) / (changes.len() * BLOCKS) as f64;
        let found = all_out as f64 / f64::from(repeats);
        println!("{noise:?}: {:.0} % of the runs, all out in {:.0} %", 100.0 * part, 100.0 * found);
        assert!(part < 0.6, "{noise:?}: {part}");
        assert!(found > 0.9, "{noise:?}: {found}");
    }
}
