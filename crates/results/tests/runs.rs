//! Error rates of comparisons of runs, by simulation of machines that vary from run to run.

mod measured;

use measured::{finished, run_of};
use numalab_record::{
    AccessPattern, BandwidthCell, Cell, CellId, Document, Experiment, IsaName, LatencyCell, Metric,
    Pages, StreamKernel, Team, WorkerPlan,
};
use numalab_results::compare::{Answer, Compared, Comparison, NamedRun, Tolerance, compare};
use numalab_stats::{Rng, Verdict};
use numalab_topology::{CpuId, Machine, NodeId};

/// Variation between runs, as standard deviations of logarithms.
#[derive(Clone, Copy, Debug)]
struct Noise {
    /// Common to all cells of a run.
    of_run: f64,
    /// Common to the cells of a kind.
    of_kind: f64,
    /// The factor by which bandwidth varies more than latency.
    uneven: f64,
    /// Specific to a cell, with the tails of Student's t with 3 degrees of freedom.
    of_cell: f64,
    /// Probability that the cell at the end of the L2 is 1.5 times as slow.
    two_states: f64,
}

/// Six times the variation that windows of 1 % imply, as measured on a virtual machine: 3 % per
/// cell.
const NOISY: Noise =
    Noise { of_run: 0.008, of_kind: 0.010, uneven: 1.0, of_cell: 0.026, two_states: 0.3 };
/// All cells of a run vary together, by the same amount.
const TOGETHER: Noise =
    Noise { of_run: 0.03, of_kind: 0.0, uneven: 1.0, of_cell: 0.003, two_states: 0.0 };
/// Cells vary independently.
const APART: Noise =
    Noise { of_run: 0.0, of_kind: 0.0, uneven: 1.0, of_cell: 0.03, two_states: 0.3 };
/// Bandwidth varies six times as much between runs as latency.
const UNEVEN: Noise =
    Noise { of_run: 0.0, of_kind: 0.005, uneven: 6.0, of_cell: 0.005, two_states: 0.0 };

fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.uniform()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.uniform()).cos()
}

/// Draws from Student's t with 3 degrees of freedom, scaled to a standard deviation of 1.
fn heavy(rng: &mut Rng) -> f64 {
    let chi: f64 = (0..3).map(|_| normal(rng).powi(2)).sum();
    normal(rng) / (chi / 3.0).sqrt() / 3.0_f64.sqrt()
}

const WORKER: WorkerPlan = WorkerPlan { cpu: CpuId(0), node: NodeId(0) };

fn latency(size_bytes: u64) -> Experiment {
    Experiment::Latency(LatencyCell {
        worker: WORKER,
        size_bytes,
        pattern: AccessPattern::PageLocal,
        pages: Pages::Transparent,
        team: Team::Serial,
    })
}

fn bandwidth(kernel: StreamKernel, workers: usize) -> Experiment {
    Experiment::Bandwidth(BandwidthCell {
        workers: vec![WORKER; workers],
        kernel,
        pattern: AccessPattern::Sequential,
        size_bytes: 64 << 20,
        pages: Pages::Transparent,
        isa: IsaName("avx512".into()),
    })
}

/// Returns the experiments of `measure --quick` on one node: 18 sizes, and three kernels on one cpu
/// and on all.
fn experiments() -> Vec<Experiment> {
    let mut cells: Vec<Experiment> = (0..18).map(|step| latency(4096 << step)).collect();
    for workers in [1, 2] {
        let kernels = [StreamKernel::Read, StreamKernel::WriteNt, StreamKernel::Triad];
        cells.extend(kernels.map(|kernel| bandwidth(kernel, workers)));
    }
    cells
}

/// Returns a run of the machine with its bandwidth multiplied by `factor`.
fn run(noise: Noise, factor: f64, rng: &mut Rng) -> NamedRun {
    run_in(0.0, noise, factor, rng)
}

/// The standard deviation of the state shared by runs begun within half an hour, as measured on a
/// virtual machine with neighbours.
const SHARED: f64 = 0.038;

/// Returns sets of runs taken back to back, an hour apart from each other.
fn sets(sizes: &[usize], first_hour: usize, factor: f64, rng: &mut Rng) -> Vec<NamedRun> {
    let mut runs = Vec::new();
    for (at, size) in sizes.iter().enumerate() {
        let state = SHARED * normal(rng);
        for number in 0..*size {
            let mut run = run_in(state, NOISY, factor, rng);
            let hours = (first_hour + at) as u64;
            run.document.run.started_unix_ms = hours * 3_600_000 + number as u64 * 30_000;
            runs.push(run);
        }
    }
    runs
}

/// Returns a run in a state of the machine that slows everything down by this logarithm.
fn run_in(state: f64, noise: Noise, factor: f64, rng: &mut Rng) -> NamedRun {
    let of_run = state + noise.of_run * normal(rng);
    let of_kinds = [noise.of_kind * normal(rng), noise.uneven * noise.of_kind * normal(rng)];
    let result = |(at, experiment): (usize, Experiment)| {
        let is_bandwidth = matches!(experiment, Experiment::Bandwidth(_));
        let metric = if is_bandwidth { Metric::Bandwidth } else { Metric::Latency };
        let mut log = of_kinds[usize::from(is_bandwidth)] + noise.of_cell * heavy(rng);
        log += if is_bandwidth { factor.ln() - of_run } else { of_run };
        if at == 9 && rng.uniform() < noise.two_states {
            log += 1.5_f64.ln();
        }
        let cell = Cell { id: CellId(format!("cell{at}")), experiment };
        finished(cell, metric, |index| 100.0 * log.exp() * (1.0 + 0.001 * f64::from(index)))
    };
    let cells = experiments().into_iter().enumerate().map(result).collect();
    NamedRun { name: String::new(), document: Document { run: run_of(Machine::default()), cells } }
}

/// Returns the runs an hour apart.
fn apart(mut runs: Vec<NamedRun>) -> Vec<NamedRun> {
    for (at, run) in (0..).zip(&mut runs) {
        run.document.run.started_unix_ms = at * 3_600_000;
    }
    runs
}

/// Compares runs of the unchanged machine with runs at its bandwidth times `factor`.
fn compared(noise: Noise, runs: [usize; 2], factor: f64, rng: &mut Rng) -> Comparison {
    let mut side = |runs: usize, factor: f64| -> Vec<NamedRun> {
        apart((0..runs).map(|_| run(noise, factor, rng)).collect())
    };
    let (baseline, candidate) = (side(runs[0], 1.0), side(runs[1], factor));
    compare(&baseline, &candidate, &Tolerance::default())
}

/// Returns the number of pairs: ten times more with `NUMALAB_LONG=1`.
fn pairs() -> u32 {
    let long = std::env::var_os("NUMALAB_LONG").is_some_and(|value| value == "1");
    if long { 2_000 } else { 200 }
}

fn share(pairs: u32, mut happens: impl FnMut(&mut Rng) -> bool) -> f64 {
    let hits = (0..pairs).filter(|seed| happens(&mut Rng::new(u64::from(*seed) + 1))).count();
    hits as f64 / f64::from(pairs)
}

/// With windows as the unit, an earlier rule reported 79 % of pairs.
#[test]
fn runs_of_one_machine_are_worse_than_its_others_in_5_percent_of_pairs() {
    let pairs = pairs();
    for noise in [NOISY, TOGETHER, APART, UNEVEN] {
        for runs in [[3, 1], [3, 3], [5, 1], [5, 3]] {
            let wrong = share(pairs, |rng| compared(noise, runs, 1.0, rng).any_worse());
            println!("{runs:?} runs, {noise:?}: {:.1} % false exits", 100.0 * wrong);
            assert!(wrong <= 0.05, "{noise:?}, {runs:?}: {wrong}");
        }
    }
}

/// With the run as the unit, 28 % of real pairs of three runs each exited with 4.
#[test]
fn sets_of_runs_that_share_a_state_are_worse_than_other_sets_in_5_percent_of_pairs() {
    let pairs = pairs();
    for (baseline, candidate) in
        [(&[3][..], &[3][..]), (&[3, 3], &[3]), (&[3, 3, 3], &[3]), (&[2, 2, 2, 2, 2], &[2, 2])]
    {
        let mut decided = 0.0;
        let wrong = share(pairs, |rng| {
            let (before, after) = (sets(baseline, 0, 1.0, rng), sets(candidate, 20, 1.0, rng));
            let found = compare(&before, &after, &Tolerance::default());
            decided += f64::from(u8::from(found.is_decided())) / f64::from(pairs);
            found.any_worse()
        });
        println!(
            "sets of {baseline:?} and {candidate:?} runs: {:.1} % false exits, {:.0} % decide anything",
            100.0 * wrong,
            100.0 * decided
        );
        assert!(wrong <= 0.05, "{baseline:?}, {candidate:?}: {wrong}");
        let is_judged = baseline.len() + candidate.len() > 3;
        assert!(is_judged || decided == 0.0, "{baseline:?}, {candidate:?}: {decided}");
    }
}

#[test]
fn a_fifth_of_bandwidth_lost_is_found_with_sets_taken_at_five_times() {
    let found = share(pairs(), |rng| {
        let (before, after) = (sets(&[2; 5], 0, 1.0, rng), sets(&[2, 2], 20, 0.8, rng));
        compare(&before, &after, &Tolerance::default()).any_worse()
    });
    println!("a fifth of bandwidth lost, 5 and 2 sets: {:.1} % found", 100.0 * found);
    assert!(found >= 0.8, "{found}");
}

#[test]
fn a_tenth_of_bandwidth_lost_is_found_with_5_runs_of_the_baseline() {
    let is_found = |found: &Comparison| {
        let of_bandwidth = |of: &Compared| match of {
            Compared::Kind { kind, .. } => *kind == "bandwidth",
            Compared::Cell(cell) => matches!(cell.experiment, Experiment::Bandwidth(_)),
        };
        found
            .figures()
            .any(|row| row.answer == Answer::Judged(Verdict::Worse) && of_bandwidth(&row.of))
    };
    for (runs, least) in [([5, 1], 0.95), ([5, 2], 0.95), ([5, 3], 0.95)] {
        let found = share(pairs(), |rng| is_found(&compared(NOISY, runs, 0.9, rng)));
        println!("{runs:?} runs: a loss of 10 % found in {:.1} %", 100.0 * found);
        assert!(found >= least, "{runs:?}: {found}");
    }
}

#[test]
fn one_run_a_side_is_shown_and_not_judged() {
    let found = compared(NOISY, [1, 1], 0.5, &mut Rng::new(1));
    assert!(!found.is_judged() && !found.any_worse());
    for row in found.figures() {
        assert_eq!(
            (row.answer, row.interval_percent, row.spread_percent),
            (Answer::NotJudged, None, None)
        );
    }
    let lost = found.kinds.iter().find(|row| row.metric == Metric::Bandwidth).unwrap();
    assert!((-55.0..-45.0).contains(&lost.change_percent), "{lost:?}");
}

#[test]
fn a_run_that_lacks_cells_costs_the_others_nothing() {
    let mut rng = Rng::new(3);
    let mut side =
        |runs: usize| apart((0..runs).map(|_| run(NOISY, 1.0, &mut rng)).collect::<Vec<_>>());
    let (mut baseline, candidate) = (side(4), side(2));
    // It was interrupted before its bandwidths, and one size failed.
    baseline[1].document.cells.truncate(18);
    baseline[2].document.cells.remove(4);
    let found = compare(&baseline, &candidate, &Tolerance::default());
    assert_eq!((found.kinds.len(), found.rows.len()), (2, 24));
    assert_eq!(found.not_in_every_run.len(), 7);
    assert!(found.figures().all(|row| row.answer != Answer::NotJudged));
}

#[test]
fn the_spread_that_is_shown_is_that_of_the_machines_runs() {
    let many = share(40, |rng| {
        let found = compared(TOGETHER, [5, 1], 1.0, rng);
        let spread = found.kinds.iter().filter_map(|row| row.spread_percent);
        spread.fold(0.0, f64::max) > 1.0
    });
    assert!(many > 0.9, "{many}");
}
