//! Two runs side by side.

use numalab_analysis::compare::{Compared, Comparison, Tolerance, compare};
use numalab_record::{Document, Outcome};
use numalab_report::{Report, Style};
use numalab_stats::Verdict;

use crate::runs;

/// `document` with every sample of cells whose id has `part` times `factor`, and its
/// windows in another order so that the two runs do not agree to the last digit.
fn changed(mut document: Document, part: &str, factor: f64) -> Document {
    for cell in &mut document.cells {
        let is_meant = cell.cell.id.0.contains(part);
        let count = cell.samples.len() / 2;
        for at in 0..count / 2 {
            let other = cell.samples[count - 1 - at].value;
            cell.samples[count - 1 - at].value = cell.samples[at].value;
            cell.samples[at].value = other;
        }
        for sample in &mut cell.samples {
            sample.value *= if is_meant { factor } else { 1.0 };
        }
    }
    document
}

fn compared(part: &str, factor: f64) -> Comparison {
    let baseline = runs::two_nodes();
    let candidate = changed(runs::two_nodes(), part, factor);
    compare(&baseline, &candidate, &Tolerance::default())
}

fn with(comparison: &Comparison, verdict: Verdict) -> Vec<String> {
    let rows = comparison.rows.iter().filter(|row| row.verdict == verdict);
    rows.filter_map(|row| row.of.cell().cloned()).map(|id| id.0).collect()
}

#[test]
fn a_run_is_not_worse_than_itself() {
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
}

#[test]
fn a_fifth_more_bandwidth_is_better() {
    let comparison = compared("bandwidth/read/Random", 1.2);
    assert!(!comparison.any_worse());
    assert_eq!(with(&comparison, Verdict::Better), ["bandwidth/read/Random/cpu0-0/node0-0"]);
}

#[test]
fn a_change_within_the_tolerance_is_no_change_however_sure() {
    let comparison = compared("", 1.03);
    assert!(!comparison.any_worse());
    assert_eq!(with(&comparison, Verdict::Better), [""; 0]);
    let strict = Tolerance::percent(1.0).expect("a tolerance");
    let baseline = runs::two_nodes();
    let candidate = changed(runs::two_nodes(), "", 1.03);
    assert!(compare(&baseline, &candidate, &strict).any_worse());
}

#[test]
fn a_small_change_of_every_cell_shows_in_all_cells_together() {
    let mut baseline = runs::two_nodes();
    for cell in &mut baseline.cells {
        cell.samples.truncate(4);
    }
    let candidate = changed(baseline.clone(), "latency", 1.08);
    let comparison = compare(&baseline, &candidate, &Tolerance::default());
    assert_eq!(with(&comparison, Verdict::Worse), [""; 0], "four windows prove nothing");
    let worse: Vec<&Compared> = comparison
        .kinds
        .iter()
        .filter(|row| row.verdict == Verdict::Worse)
        .map(|row| &row.of)
        .collect();
    assert_eq!(worse, [&Compared::Kind { kind: "latency", cells: 55 }]);
    assert!(comparison.page().markdown().contains("all 55 latency cells"));
    assert!(comparison.any_worse());
}

#[test]
fn what_was_measured_in_one_run_only_is_listed_and_not_judged() {
    let mut candidate = runs::two_nodes();
    let reason = "no memory".to_owned();
    candidate.cells[7].ended = Some(Outcome::Failed { reason });
    let lost = candidate.cells[7].cell.id.clone();
    let comparison = compare(&runs::two_nodes(), &candidate, &Tolerance::default());
    assert_eq!(comparison.only_in_baseline, std::slice::from_ref(&lost));
    assert!(comparison.rows.iter().all(|row| row.of.cell() != Some(&lost)));
}

#[test]
fn other_pages_and_another_environment_are_said() {
    let mut candidate = runs::two_nodes();
    let bytes = candidate.cells[30].placements[0].buffer_bytes;
    candidate.cells[30].placements[0].bytes_per_page_size = [(4096, bytes)].into();
    let facts = &mut candidate.run.environment.facts;
    facts.insert("kernel".into(), "Linux <next>".into());
    facts.insert("load_average".into(), "0.71 0.30 0.10".into());
    let comparison = compare(&runs::two_nodes(), &candidate, &Tolerance::default());
    let pages: Vec<_> = comparison.rows.iter().filter_map(|row| row.pages_differ).collect();
    assert_eq!(pages, [(2 << 20, 4096)]);
    assert!(comparison.page().markdown().contains("pages of 2M became 4K"));
    assert_eq!(comparison.environment.len(), 1);
    assert!(comparison.page().html().contains("Linux &lt;next&gt;"));
    assert!(comparison.page().markdown().contains("Linux &lt;next&gt;"));
}

#[test]
fn a_comparison_reads_as_it_did() {
    let comparison = compared("node1/536870912", 1.2);
    let text = comparison.page().terminal(Style::Plain);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!("compare-text", text);
    insta::assert_snapshot!("compare-markdown", comparison.page().markdown());
}

#[test]
fn the_json_of_a_comparison_says_what_was_found() {
    let json = compared("latency/cpu1/node1", 1.2).json().expect("it serialises");
    let value: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(value["schema"], "numalab/comparison-2");
    assert_eq!(value["any_worse"], true);
    let cells = value["cells"].as_array().expect("cells");
    let worse: Vec<_> = cells.iter().filter(|cell| cell["verdict"] == "worse").collect();
    assert_eq!(worse.len(), 1);
    let change = worse[0]["change_percent"].as_f64().expect("a change");
    assert!((19.0..21.0).contains(&change), "{change}");
}
