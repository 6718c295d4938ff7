//! Comparisons of runs.

use numalab_page::Style;
use numalab_record::{Document, Outcome};
use numalab_results::Report;
use numalab_results::compare::{Answer, Compared, Comparison, NamedRun, Tolerance, compare};
use numalab_stats::Verdict;

use crate::runs;

/// Returns the start of a run; the runs of a side are an hour apart.
fn apart(number: u32, run: u32) -> u64 {
    u64::from(100 * number + run) * 3_600_000
}

/// Returns runs of a machine: samples of cells with `part` in their id are multiplied by `factor`,
/// and each cell varies slightly between runs.
pub fn side(number: u32, runs: u32, part: &str, factor: f64) -> Vec<NamedRun> {
    let run = |run: u32| {
        let mut document = runs::two_nodes();
        document.run.started_unix_ms += apart(number, run);
        for (at, cell) in document.cells.iter_mut().enumerate() {
            let phase = f64::from(run + 10 * number) * 2.4 + at as f64 * 1.7;
            let is_meant = cell.cell.id.0.contains(part);
            let factor = (1.0 + 0.004 * phase.sin()) * if is_meant { factor } else { 1.0 };
            for sample in &mut cell.samples {
                sample.value *= factor;
            }
        }
        NamedRun { name: format!("results/{number}-{run}"), document }
    };
    (0..runs).map(run).collect()
}

/// Compares three runs per side.
fn compared(part: &str, factor: f64) -> Comparison {
    compare(&side(1, 3, "", 1.0), &side(2, 3, part, factor), &Tolerance::default())
}

fn one(document: Document) -> [NamedRun; 1] {
    [NamedRun { name: "results/one".to_owned(), document }]
}

fn with(comparison: &Comparison, verdict: Verdict) -> Vec<String> {
    let rows = comparison.rows.iter().filter(|row| row.answer == Answer::Judged(verdict));
    rows.filter_map(|row| row.of.cell().cloned()).map(|id| id.0).collect()
}

#[test]
fn runs_are_not_worse_than_others_of_their_machine() {
    let comparison = compared("", 1.0);
    assert!(!comparison.any_worse());
    assert_eq!(with(&comparison, Verdict::Better), [""; 0]);
    assert!(comparison.only_in_baseline.is_empty() && comparison.environment.is_empty());
}

#[test]
fn a_fifth_more_latency_is_worse_and_named() {
    let comparison = compared("latency/cpu1/node1", 1.2);
    assert!(comparison.any_worse());
    assert_eq!(with(&comparison, Verdict::Worse), ["latency/cpu1/node1/536870912/random/thp"]);
    let row = comparison.rows.iter().find(|row| row.answer == Answer::Judged(Verdict::Worse));
    let row = row.expect("a row");
    let [before, after] = row.means.expect("means");
    let change = 100.0 * (after / before - 1.0);
    assert!((change - row.change_percent).abs() < 1e-9, "the change is that of its columns");
}

#[test]
fn a_fifth_more_bandwidth_is_better() {
    let comparison = compared("bandwidth/read/Random", 1.2);
    assert!(!comparison.any_worse());
    assert_eq!(with(&comparison, Verdict::Better), ["bandwidth/read/Random/cpu0-0/node0-0"]);
}

#[test]
fn a_change_within_the_tolerance_is_not_reported_even_if_certain() {
    let comparison = compared("", 1.015);
    assert!(!comparison.any_worse());
    assert_eq!(with(&comparison, Verdict::Better), [""; 0]);
    let strict = Tolerance::percent(0.5).expect("a tolerance");
    assert!(compare(&side(1, 3, "", 1.0), &side(2, 3, "", 1.015), &strict).any_worse());
}

#[test]
fn a_change_of_every_cell_shows_in_all_cells_together() {
    let comparison = compared("latency", 1.05);
    let worse = comparison.kinds.iter().filter(|row| row.answer == Answer::Judged(Verdict::Worse));
    let worse: Vec<&Compared> = worse.map(|row| &row.of).collect();
    assert_eq!(worse, [&Compared::Kind { kind: "latency", cells: 55 }]);
    assert!(comparison.document().page().markdown().contains("latency, 55 cells"));
}

#[test]
fn runs_taken_back_to_back_are_one_unit_and_are_not_judged() {
    let mut sides = [side(1, 3, "", 1.0), side(2, 3, "latency", 1.5)];
    for run in sides.iter_mut().flatten() {
        run.document.run.started_unix_ms %= 60_000;
    }
    let comparison = compare(&sides[0], &sides[1], &Tolerance::default());
    assert_eq!((comparison.units, comparison.is_judged()), ([1, 1], false));
    assert!(!comparison.any_worse() && !comparison.is_decided());
    assert!(comparison.figures().all(|row| row.answer == Answer::NotJudged));
    // In virtual time there are no neighbours: each run is a unit.
    for run in sides.iter_mut().flatten() {
        run.document.run.environment.facts.insert("time".into(), "virtual".into());
    }
    let comparison = compare(&sides[0], &sides[1], &Tolerance::default());
    assert_eq!(comparison.units, [3, 3]);
    assert!(comparison.any_worse());
}

#[test]
fn round_trips_between_cpus_are_shown_and_not_judged() {
    let comparison = compare(&side(1, 3, "", 1.0), &side(2, 3, "c2c", 1.6), &Tolerance::default());
    let is_c2c = |row: &&numalab_results::compare::ComparedCell| match &row.of {
        Compared::Kind { kind, .. } => *kind == "c2c",
        Compared::Cell(cell) => cell.id.0.contains("c2c"),
    };
    let rows: Vec<_> = comparison.figures().filter(is_c2c).collect();
    assert!(rows.len() > 1 && rows.iter().all(|row| row.answer == Answer::NotJudged));
    assert!(rows.iter().any(|row| row.change_percent > 50.0), "{rows:?}");
    assert!(!comparison.any_worse());
}

#[test]
fn a_judged_comparison_says_which_changes_it_could_have_shown() {
    let comparison = compared("", 1.0);
    let kind = comparison.kinds.iter().find(|row| row.metric.name() == "latency").expect("a row");
    let least = kind.least_percent.expect("three runs a side");
    assert!((2.0..20.0).contains(&least), "{kind:?}");
    let text = comparison.document().page().lead[0].sentence.clone();
    assert!(text.contains("The smallest changes of a kind that these runs can show: "), "{text}");
}

#[test]
fn one_run_a_side_is_shown_with_the_reason_why_it_is_not_judged() {
    let changed = side(2, 1, "latency", 1.5);
    let comparison = compare(&side(1, 1, "", 1.0), &changed, &Tolerance::default());
    assert!(!comparison.any_worse());
    let text = comparison.document().page().terminal(Style::Plain);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "Not judged",
        "latency, 55 cells +5",
        "Runs begun within half an hour share the state of the machine and its neighbours",
        "these count as 2 measurements on 2 sides; it takes four to show how much the machine varies",
    ] {
        assert!(flat.contains(words), "no `{words}` in:\n{text}");
    }
    assert!(!flat.contains(" worse"), "{text}");
}

#[test]
fn a_cell_that_leaves_its_kind_in_one_run_was_seen_once() {
    let changed = side(2, 1, "latency/cpu1/node1", 1.5);
    let comparison = compare(&side(1, 5, "", 1.0), &changed, &Tolerance::default());
    assert!(!comparison.any_worse());
    let seen: Vec<_> =
        comparison.rows.iter().filter(|row| row.answer == Answer::SeenOnce).collect();
    assert_eq!(seen.len(), 1);
    let text = comparison.document().page().terminal(Style::Plain);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("1 cell is out of line in one run"), "{text}");
    assert!(flat.contains("Measure again, or use --repeat 2."), "{text}");
    assert!(comparison.any_worse_once(), "a gate has not decided it");
    let faster = side(2, 1, "latency/cpu1/node1", 0.5);
    let comparison = compare(&side(1, 5, "", 1.0), &faster, &Tolerance::default());
    assert!(comparison.rows.iter().any(|row| row.answer == Answer::SeenOnce));
    assert!(!comparison.any_worse_once(), "an improvement leaves it decided that none is worse");
}

#[test]
fn cells_of_only_one_run_are_listed_and_not_judged() {
    let mut candidate = runs::two_nodes();
    let reason = "no memory".to_owned();
    candidate.cells[7].ended = Some(Outcome::Failed { reason });
    let lost = candidate.cells[7].cell.id.clone();
    let comparison = compare(&one(runs::two_nodes()), &one(candidate), &Tolerance::default());
    assert_eq!(comparison.only_in_baseline, std::slice::from_ref(&lost));
    assert!(comparison.rows.iter().all(|row| row.of.cell() != Some(&lost)));
}

#[test]
fn other_page_sizes_and_a_different_environment_are_reported() {
    let mut candidate = runs::two_nodes();
    let bytes = candidate.cells[30].placements[0].buffer_bytes;
    candidate.cells[30].placements[0].bytes_per_page_size = [(4096, bytes)].into();
    let facts = &mut candidate.run.environment.facts;
    facts.insert("kernel".into(), "Linux <next>".into());
    facts.insert("load_average".into(), "0.71 0.30 0.10".into());
    let comparison = compare(&one(runs::two_nodes()), &one(candidate), &Tolerance::default());
    let pages: Vec<_> = comparison.rows.iter().filter_map(|row| row.pages_differ).collect();
    assert_eq!(pages, [(2 << 20, 4096)]);
    assert!(comparison.document().page().markdown().contains("pages of 2M became 4K"));
    assert_eq!(comparison.environment.len(), 1);
    assert!(comparison.document().page().html().contains("Linux &lt;next&gt;"));
    assert!(comparison.document().page().markdown().contains("Linux &lt;next&gt;"));
}

#[test]
fn a_comparison_reads_as_it_did() {
    let comparison = compared("node1/536870912", 1.2);
    let text = comparison.document().page().terminal(Style::Plain);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!("compare-text", text);
    insta::assert_snapshot!("compare-markdown", comparison.document().page().markdown());
}

#[test]
fn the_json_of_a_comparison_has_its_findings() {
    let json = compared("latency/cpu1/node1", 1.2).document().json().expect("it serialises");
    let value: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(value["schema"], "numalab/comparison-2");
    assert_eq!(value["any_worse"], true);
    let cells = value["cells"].as_array().expect("cells");
    let worse: Vec<_> = cells.iter().filter(|cell| cell["verdict"] == "worse").collect();
    assert_eq!(worse.len(), 1);
    let change = worse[0]["change_percent"].as_f64().expect("a change");
    assert!((19.0..21.0).contains(&change), "{change}");
}
