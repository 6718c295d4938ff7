//! Results kept in the repository, with their pages.

use std::path::{Path, PathBuf};

use numalab_page::{Format, Style};
use numalab_record::study::StudyDocument;
use numalab_record::{Document, file};
use numalab_results::Report;
use numalab_results::compare::{NamedRun, Tolerance, compare};
use numalab_results::run::Summary;
use numalab_results::study::StudySummary;
use serde_json::Value;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn run(directory: &Path) -> Document {
    let of = |name| read(&directory.join(name));
    Document::from_files(&of(file::RUN), &of(file::CELLS), &of(file::SAMPLES)).expect("a run")
}

fn study(directory: &Path) -> StudyDocument {
    let of = |name| read(&directory.join(name));
    StudyDocument::from_files(&of(file::RUN), &of(file::JOURNAL)).expect("a study")
}

/// Returns the runs below a directory of the repository, by path.
fn runs(directory: &str) -> Vec<NamedRun> {
    let entries = repository().join(directory).read_dir().expect("runs");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("a run").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let named = |name: &String| {
        let name = format!("{directory}/{name}");
        NamedRun { document: run(&repository().join(&name)), name }
    };
    names.iter().map(named).collect()
}

/// Compares line by line, so that the first difference is shown.
fn assert_same(found: &str, page: &str) {
    let expected = read(&repository().join(page));
    for (at, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "{page}, line {}", at + 1);
    }
    assert_eq!(found.len(), expected.len(), "{page}");
}

#[test]
fn the_kept_run_has_the_kept_page() {
    let document = run(&repository().join("docs/examples/run"));
    assert_same(&Summary::of(&document).page().redacted().markdown(), "docs/examples/run.md");
}

#[test]
fn the_kept_study_has_the_kept_page() {
    let document = study(&repository().join("docs/examples/study"));
    assert_same(
        &StudySummary::of(&document).page().redacted().markdown(),
        "docs/examples/study.md",
    );
}

#[test]
fn the_kept_comparison_has_the_kept_page() {
    let of = |side: &str| runs(&format!("docs/examples/comparison/{side}"));
    let found = compare(&of("before"), &of("after"), &Tolerance::default());
    assert_same(&found.document().page().redacted().markdown(), "docs/examples/comparison.md");
}

#[test]
fn the_kept_html_page_of_the_run_matches_the_present_renderer() {
    let document = run(&repository().join("docs/examples/run"));
    let page = Summary::of(&document).page().redacted().html();
    assert_same(&page, "docs/examples/run/report.html");
}

/// Returns a file written by numalab 0.1.0.
fn before(what: &str) -> PathBuf {
    repository().join("crates/cli/tests/written-before").join(what)
}

#[test]
fn a_run_of_the_first_version_has_its_page_and_its_rows() {
    let document = run(&before("run"));
    let summary = Summary::of(&document);
    insta::assert_snapshot!("before-run-terminal", summary.terminal(Style::Plain));
    insta::assert_snapshot!("before-run-csv", summary.exported(Format::Csv).expect("rows"));
    let json: Value = serde_json::from_str(&summary.json().expect("JSON")).expect("JSON");
    assert_eq!(json["schema"], "numalab/run-2", "it is written anew as what it is now");
    assert_eq!(json["cells"].as_array().map(Vec::len), Some(document.cells.len()));
}

#[test]
fn a_study_of_the_first_version_has_its_page_and_its_rows() {
    let document = study(&before("study"));
    let summary = StudySummary::of(&document);
    insta::assert_snapshot!("before-study-terminal", summary.terminal(Style::Plain));
    insta::assert_snapshot!("before-study-markdown", summary.page().redacted().markdown());
    insta::assert_snapshot!("before-study-csv", summary.exported(Format::Csv).expect("rows"));
}

#[test]
fn private_facts_of_a_kept_run_are_in_no_format_of_its_redacted_page() {
    let mut document = run(&repository().join("docs/examples/run"));
    let facts = &mut document.run.environment.facts;
    facts.insert("hostname".to_owned(), "annas-laptop".into());
    let page = Summary::of(&document).page();
    assert!(page.markdown().contains("annas") && page.html().contains("annas"));
    let redacted = page.redacted();
    for text in [redacted.terminal(Style::Colour), redacted.markdown(), redacted.html()] {
        assert!(!text.contains("annas"), "{text}");
        assert!(!text.contains("no_timer_check"), "the kernel's command line: {text}");
    }
}
