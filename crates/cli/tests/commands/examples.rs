//! The examples in docs/examples: every result is read, and its page must equal the kept one.
//! `NUMALAB_EXAMPLES=write cargo test -p numalab --test commands examples::` regenerates them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::command::prints_in;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn prints(arguments: &[&str]) -> String {
    // Pages name results by the paths given, so they do not depend on this directory.
    prints_in(&root(), arguments)
}

/// Compares a page with the kept one, or replaces it.
fn is_kept(file: &str, page: &str) {
    let place = root().join("docs/examples").join(file);
    if std::env::var_os("NUMALAB_EXAMPLES").is_some_and(|word| word == "write") {
        fs::write(&place, page).expect("written");
        return;
    }
    let kept = fs::read_to_string(&place).unwrap_or_else(|error| panic!("{file}: {error}"));
    let differ = kept.lines().zip(page.lines()).find(|(kept, made)| kept != made);
    let advice =
        "NUMALAB_EXAMPLES=write cargo test -p numalab --test commands examples:: takes it over";
    assert!(kept == page, "docs/examples/{file} is not what is made now: {differ:?}\n{advice}");
}

/// Returns a page without its origin: the command line, the time and the machine.
fn without_origin(page: &str, command: &str) -> String {
    let origin = format!(" · numalab {command} ");
    assert!(page.contains(&origin), "{page}");
    let kept = page.lines().map(|line| line.split_once(&origin).map_or(line, |(kept, _)| kept));
    kept.map(|line| format!("{line}\n")).collect()
}

const FLEET: &str = "docs/examples/fleet";

#[test]
fn a_kept_run_is_read_and_its_pages_are_made_again() {
    let run = ["report", "docs/examples/run", "--format"];
    is_kept("run.md", &prints(&[&run[..], &["md"]].concat()));
    is_kept("run/report.html", &prints(&[&run[..], &["html"]].concat()));
}

#[test]
fn a_kept_study_is_read_and_its_page_is_made_again() {
    is_kept("study.md", &prints(&["report", "docs/examples/study", "--format", "md"]));
}

#[test]
fn a_kept_fleet_is_collected_and_its_page_names_the_slow_host() {
    let place = tempfile::tempdir().expect("made");
    let store = place.path().join("fleet.jsonl");
    let store = store.to_str().expect("UTF-8");
    assert!(prints(&["fleet", "collect", FLEET, "--store", store]).contains("12 runs"));
    let report = ["fleet", "report", FLEET, "--store", store, "--format", "md", "--redact", "no"];
    let page = prints(&report);
    is_kept("fleet.md", &without_origin(&page, "fleet report"));
    assert!(page.contains("n07"), "{page}");
}

#[test]
fn two_kept_sets_of_runs_are_compared_as_the_page_says() {
    let sets = ["before", "after"].map(|set| format!("docs/examples/comparison/{set}"));
    let page = prints(&["compare", &sets[0], &sets[1], "--format", "md", "--redact", "no"]);
    is_kept("comparison.md", &without_origin(&page, "compare"));
    assert!(page.contains("+25"), "{page}");
}
