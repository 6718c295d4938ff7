//! Runs compared: the matching of cells, and the judgement of changes.

use std::collections::BTreeMap;

use numalab_record::{
    CellId, CellResult, Document, Environment, Experiment, Fact, LatencyCell, Metric, Pages, Sample,
};
use numalab_results::compare::document::RunComparison;
use numalab_results::compare::{
    Answer, Compared, ComparedCell, Comparison, FactDifference, NamedRun, Tolerance, compare,
    lasting_differences,
};
use numalab_stats::Verdict;

use crate::run_lab::{
    MIB, bandwidth, chase, core, document, failed, id, latency, stream, with_fact, worker,
};

fn run(cells: Vec<CellResult>) -> NamedRun {
    NamedRun { name: "run".to_owned(), document: document(cells) }
}

/// Returns the runs an hour apart.
fn apart(runs: &[NamedRun]) -> Vec<NamedRun> {
    let mut runs = runs.to_vec();
    for (at, run) in (0..).zip(&mut runs) {
        run.document.run.started_unix_ms = at * 3_600_000;
    }
    runs
}

fn sized(mib: u64, ns: f64) -> CellResult {
    latency(LatencyCell { size_bytes: mib * MIB, ..chase(0, 0) }, ns)
}

/// Returns runs of four sizes, each with separate noise, all `factor` times slower.
fn runs(noise: &[f64], factor: f64) -> Vec<NamedRun> {
    let of = |(at, noise): (usize, &f64)| {
        let cells = [1, 2, 4, 8].map(|mib: u64| {
            let own = 1.0 + 0.001 * ((at as u64 * 7 + mib * 3) % 5) as f64;
            sized(mib, 100.0 * mib as f64 * noise * factor * own)
        });
        NamedRun { name: format!("run{at}"), ..run(cells.to_vec()) }
    };
    noise.iter().enumerate().map(of).collect()
}

fn compared(baseline: &[NamedRun], candidate: &[NamedRun]) -> Comparison {
    compare(&apart(baseline), &apart(candidate), &Tolerance::default())
}

fn answers(rows: &[ComparedCell]) -> Vec<Answer> {
    rows.iter().map(|row| row.answer).collect()
}

const NOISE: [f64; 4] = [0.997, 1.0, 1.002, 1.004];

#[test]
fn a_loss_in_every_cell_of_a_kind_is_reported_for_the_kind_and_the_cells() {
    let found = compared(&runs(&NOISE, 1.0), &runs(&NOISE, 1.1));
    let [kind] = &found.kinds[..] else { panic!("{:?}", found.kinds) };
    assert_eq!(kind.of, Compared::Kind { kind: "latency", cells: 4 });
    assert_eq!(
        (kind.answer, kind.metric, kind.means),
        (Answer::Judged(Verdict::Worse), Metric::Latency, None)
    );
    assert!((kind.change_percent - 10.0).abs() < 0.5, "{kind:?}");
    assert_eq!(answers(&found.rows), [Answer::Judged(Verdict::Worse); 4]);
    let interval = kind.interval_percent.expect("several runs");
    assert!(
        interval.lo > 5.0 && interval.lo < kind.change_percent && interval.hi < 15.0,
        "{kind:?}"
    );
    assert!(found.any_worse() && found.is_judged());
    assert_eq!(found.baseline, ["run0", "run1", "run2", "run3"]);
}

#[test]
fn a_gain_is_better_and_no_change_is_equivalent_within_the_tolerance() {
    let faster = compared(&runs(&NOISE, 1.0), &runs(&NOISE, 0.9));
    assert_eq!(faster.kinds[0].answer, Answer::Judged(Verdict::Better));
    assert!(!faster.any_worse());
    let same = compared(&runs(&NOISE, 1.0), &runs(&NOISE, 1.0));
    assert_eq!(same.kinds[0].answer, Answer::Judged(Verdict::Equivalent));
    let wide = Tolerance::percent(15.0).unwrap();
    let within = compare(&apart(&runs(&NOISE, 1.0)), &apart(&runs(&NOISE, 1.1)), &wide);
    assert_eq!(within.kinds[0].answer, Answer::Judged(Verdict::Equivalent));
    assert_eq!((wide.as_percent(), Tolerance::default().as_percent()), (15.0, 2.0));
    assert!(Tolerance::percent(-1.0).is_err() && Tolerance::percent(f64::NAN).is_err());
}

/// Returns the same runs with many windows in each cell; in the runs in `stalled` some windows take
/// longer.
fn with_tails(mut runs: Vec<NamedRun>, stalled: &[usize]) -> Vec<NamedRun> {
    for (at, run) in runs.iter_mut().enumerate() {
        for cell in &mut run.document.cells {
            let first = cell.samples[0].clone();
            let window = |number: u32| {
                let far = if stalled.contains(&at) && number % 50 == 7 { 4.0 } else { 1.0 };
                let own = 1.0 + 0.0001 * f64::from(number * 7 % 11);
                Sample { value: first.value * own * far, ..first.clone() }
            };
            cell.samples = (0..300).map(window).collect();
        }
    }
    runs
}

#[test]
fn tails_that_differ_are_seen_where_medians_do_not_but_not_by_one_run() {
    let against = |baseline: &[usize], candidate: &[usize]| {
        let sides = [baseline, candidate].map(|of| with_tails(runs(&NOISE, 1.0), of));
        let found = compared(&sides[0], &sides[1]);
        assert_eq!(found.kinds[0].answer, Answer::Judged(Verdict::Equivalent));
        (found.kinds[0].tail.clone(), found.any_tail_worse())
    };
    let (tail, is_worse) = against(&[], &[0, 1, 2, 3]);
    let tail = tail.expect("a tail");
    assert!(is_worse && tail.is_shown_worse(), "{tail:?}");
    assert!(tail.percentile >= 99.0 && tail.values[0] < 1.1, "{tail:?}");
    assert!(tail.values[1] > 3.9, "{tail:?}");
    let (better, is_worse) = against(&[0, 1, 2, 3], &[]);
    assert!(better.is_some_and(|end| end.is_shown && !end.is_worse) && !is_worse);
    let (once, is_worse) = against(&[], &[2]);
    assert!(once.is_none_or(|end| !end.is_shown) && !is_worse, "one run's stalls");
    assert_eq!(against(&[], &[]), (None, false));
    assert_eq!(against(&[0, 1, 2, 3], &[0, 1, 2, 3]), (None, false));
}

#[test]
fn comparisons_that_called_tails_far_ends_are_read() {
    let sides = [&[][..], &[0, 1, 2, 3]].map(|of| with_tails(runs(&NOISE, 1.0), of));
    let document = compared(&sides[0], &sides[1]).document();
    assert!(document.kinds[0].tail.is_some());
    let before = serde_json::to_string(&document).unwrap().replace("\"tail\"", "\"far_end\"");
    assert_eq!(serde_json::from_str::<RunComparison>(&before).unwrap(), document);
}

#[test]
fn a_bandwidth_that_falls_is_worse() {
    let with = |factor: f64| -> Vec<NamedRun> {
        let of = |noise: &f64| {
            let reads = [1, 2].map(|cpus| {
                let workers = (0..cpus).map(|cpu| worker(cpu, 0)).collect();
                bandwidth(stream(workers), 10.0 * f64::from(cpus) * noise * factor)
            });
            run(reads.to_vec())
        };
        NOISE.iter().map(of).collect()
    };
    let found = compared(&with(1.0), &with(0.8));
    assert_eq!(found.kinds[0].answer, Answer::Judged(Verdict::Worse));
    assert!((found.kinds[0].change_percent + 20.0).abs() < 0.5, "{:?}", found.kinds);
}

#[test]
fn a_single_cell_of_a_kind_has_no_row_for_the_kind() {
    let one = |ns: f64| run(vec![sized(1, ns)]);
    let found = compared(&[one(100.0), one(100.5)], &[one(130.0), one(130.4)]);
    assert_eq!((found.kinds.len(), found.rows.len()), (0, 1));
    let means = found.rows[0].means.expect("of one cell");
    assert!((means[0] - (100.0_f64 * 100.5).sqrt()).abs() < 1e-9, "geometric: {means:?}");
    assert!((means[1] - (130.0_f64 * 130.4).sqrt()).abs() < 1e-9, "{means:?}");
    assert!(
        matches!(&found.rows[0].of, Compared::Cell(cell) if Some(&cell.id) == found.rows[0].of.cell())
    );
}

#[test]
fn with_one_run_on_a_side_kinds_are_judged_and_cells_are_seen_once() {
    let mut candidate = runs(&[1.0], 1.0);
    let samples = candidate[0].document.cells[2].samples.iter_mut();
    samples.for_each(|sample| sample.value *= 1.5);
    let found = compared(&runs(&NOISE, 1.0), &candidate);
    assert_eq!(found.rows[2].answer, Answer::SeenOnce);
    assert!(!found.rows.iter().any(|row| row.answer == Answer::Judged(Verdict::Worse)));
    assert!(!found.any_worse(), "cells have states that last for a run");
    let all = compared(&runs(&NOISE, 1.0), &runs(&[1.0], 1.2));
    assert_eq!(all.kinds[0].answer, Answer::Judged(Verdict::Worse));
}

#[test]
fn cells_are_matched_by_name_and_by_all_that_was_to_be_done() {
    let old = || run(vec![sized(1, 100.0), sized(2, 200.0)]);
    let mut other = old();
    let Experiment::Latency(of) = &mut other.document.cells[1].cell.experiment else {
        panic!("a latency cell")
    };
    of.pages = Pages::HUGE_2M;
    let found = compared(&[old()], &[other]);
    let compared_ids: Vec<&CellId> = found.rows.iter().filter_map(|row| row.of.cell()).collect();
    assert_eq!(compared_ids, [&id(&sized(1, 1.0))], "the other is not the same experiment");
}

#[test]
fn cells_that_a_side_or_a_run_lacks_are_listed() {
    let (a, b, c) = (sized(1, 100.0), sized(2, 200.0), core(0, 3.0));
    let before = vec![run(vec![a.clone(), b.clone()]), run(vec![a.clone(), b.clone()])];
    let after =
        vec![run(vec![a.clone(), c.clone()]), run(vec![failed(a.clone(), "no"), c.clone()])];
    let found = compared(&before, &after);
    assert_eq!(found.only_in_baseline, [id(&b)]);
    assert_eq!(found.only_in_candidate, [id(&c)]);
    assert_eq!(found.not_in_every_run, [id(&a)], "it failed in one");
}

#[test]
fn values_not_above_0_have_no_ratio_and_are_not_compared() {
    let of = |ns: f64| run(vec![sized(1, ns), sized(2, 200.0)]);
    let found = compared(&[of(0.0)], &[of(100.0)]);
    assert_eq!(found.rows.len(), 1);
    assert_eq!(found.only_in_candidate, [id(&sized(1, 1.0))]);
}

#[test]
fn another_size_of_pages_is_shown_with_the_cell() {
    let with = |pages: &[(u64, u64)]| {
        let mut cell = sized(1, 100.0);
        cell.placements[0].bytes_per_page_size = pages.iter().copied().collect::<BTreeMap<_, _>>();
        run(vec![cell])
    };
    let (small, huge) = (4096, 2 << 20);
    let differ = |before: &[(u64, u64)], after: &[(u64, u64)]| {
        compared(&[with(before)], &[with(after)]).rows[0].pages_differ
    };
    assert_eq!(differ(&[(small, 9), (huge, 1)], &[(small, 1), (huge, 9)]), Some((small, huge)));
    assert_eq!(differ(&[(small, 9)], &[(small, 9), (huge, 1)]), None, "most are the same");
    assert_eq!(differ(&[], &[(huge, 1)]), None, "nobody knows");
}

#[test]
fn lasting_differences_of_the_first_runs_are_named_and_passing_ones_are_not() {
    let of = |kernel: &str, load: &str| {
        let document: Document = with_fact(document(vec![sized(1, 1.0)]), "kernel", kernel);
        NamedRun { name: "r".to_owned(), document: with_fact(document, "load_average", load) }
    };
    let found = compared(&[of("6.1", "0"), of("9", "9")], &[of("6.12", "3")]);
    let difference = |name: &str, baseline: Option<&str>, candidate: Option<&str>| FactDifference {
        name: name.to_owned(),
        baseline: baseline.map(Fact::from),
        candidate: candidate.map(Fact::from),
    };
    assert_eq!(found.environment, [difference("kernel", Some("6.1"), Some("6.12"))]);
    let facts = |of: &[(&str, &str)]| Environment {
        facts: of
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Fact::read(name, value)))
            .collect(),
    };
    let gone = lasting_differences(&facts(&[("thp", "always")]), &facts(&[]));
    assert_eq!(gone, [difference("thp", Some("always"), None)]);
}

#[test]
fn no_runs_at_all_are_compared_to_nothing() {
    let found = compared(&[], &[]);
    assert_eq!((found.rows.len(), found.kinds.len(), found.is_judged()), (0, 0, false));
    let one = compared(&runs(&[1.0], 1.0), &[]);
    assert_eq!((one.rows.len(), one.only_in_baseline.len()), (0, 4));
}
