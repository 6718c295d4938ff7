//! Checks that every command with a result prints it in the requested format. The whole output in
//! each format is compared in `crates/results/tests`.

use std::fs;
use std::path::{Path, PathBuf};

use numalab_page::{Format, Style};
use numalab_record::{Document, file};
use numalab_results::Report;
use numalab_results::run::Summary;
use tempfile::TempDir;

use crate::command::{numalab_in, prints_in, refused};
use crate::jq;
use crate::schemas;

/// Checks that each of these commands prints a document of its kind, and that `report` shows it
/// again.
fn all_print_documents(place: &Path, commands: &[&[&str]]) {
    for command in commands {
        let printed = prints_in(place, &[command, &["--format", "json"][..]].concat());
        schemas::document(&printed);
        fs::write(place.join("document.json"), &printed).expect("written");
        let again = prints_in(place, &["report", "document.json", "--format", "json"]);
        assert!(again == printed, "{command:?}: {printed}\nagain: {again}");
        prints_in(place, &["report", "document.json"]);
    }
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples")
}

#[test]
fn the_documented_jq_lines_find_the_figures_of_a_run() {
    let document = prints_in(&examples(), &["report", "run", "--format", "json"]);
    let printed = jq::documented("run.json", &document);
    assert_eq!(printed.len(), 3);
    assert!(printed[0].contains("latency\t") && printed[1].contains("\"L1\""), "{printed:?}");
    assert!(printed[2].contains("\"rows\""), "{printed:?}");
}

/// Its pages in Markdown and HTML are compared in `examples.rs`.
#[test]
fn a_kept_run_is_printed_as_the_text_the_rows_and_the_document_that_are_made_of_it() {
    let run = |name| fs::read_to_string(examples().join("run").join(name)).expect("kept");
    let document = Document::from_files(&run(file::RUN), &run(file::CELLS), &run(file::SAMPLES));
    let document = document.expect("a run");
    let summary = Summary::of(&document);
    for (format, expected) in [
        ("text", summary.terminal(Style::Plain)),
        ("csv", summary.exported(Format::Csv).expect("rows")),
        ("json", summary.json().expect("JSON") + "\n"),
    ] {
        let printed = prints_in(&examples(), &["report", "run", "--format", format]);
        assert!(printed == expected, "--format {format}: {printed}");
    }
}

#[test]
fn every_kind_of_kept_result_is_printed_as_a_document() {
    let place = tempfile::tempdir().expect("a directory");
    let place = place.path();
    let kept = examples();
    for (name, text) in [("a", "1\n2\n3\n"), ("b", "2 3 4\n")] {
        fs::write(place.join(name), text).expect("written");
    }
    fs::write(place.join("sequential_domains0_1ranks_1-1MB.csv"), "size (MB),0\n1,11.53\n")
        .expect("written");
    let of = |name: &str| kept.join(name).to_str().expect("UTF-8").to_owned();
    let (run, study) = (of("run"), of("study"));
    let (before, after, fleet) = (of("comparison/before"), of("comparison/after"), of("fleet"));
    prints_in(place, &["fleet", "collect", &fleet, "--store", "fleet.jsonl", "--quiet"]);
    let commands: [&[&str]; 5] = [
        &["report", &run],
        &["report", &study],
        &["report", "sequential_domains0_1ranks_1-1MB.csv"],
        &["report", &study],
        &["fleet", "report", &fleet, "--store", "fleet.jsonl"],
    ];
    all_print_documents(place, &commands);
    let comparisons: [&[&str]; 5] = [
        &["compare", &before, &after],
        &["compare", &study, &study],
        &["compare", "a", "b"],
        &["compare", "a", "b", "--better", "higher"],
        &["compare", "xeon-8360y-2s", "x460"],
    ];
    for command in comparisons {
        all_print_documents(place, &[command]);
        for format in ["text", "html", "csv"] {
            let page = prints_in(place, &[command, &["--format", format]].concat());
            let again = prints_in(place, &["report", "document.json", "--format", format]);
            let (again, page) = (without_origin(&again), without_origin(&page));
            assert!(again == page, "{command:?}: {page}\nagain: {again}");
        }
    }
}

/// Returns a page without the paragraph that says which command took it, when and where.
fn without_origin(page: &str) -> String {
    match page.split_once("<p class=\"meta\">") {
        Some((before, rest)) => {
            let (_, after) = rest.split_once("</p>").expect("its end");
            format!("{before}{after}")
        }
        None => page.split_once("\n\n").map_or(page, |(_, rest)| rest).to_owned(),
    }
}

/// Comparisons of earlier versions do not say which values are better.
#[test]
fn an_earlier_comparison_that_lacks_data_for_its_page_names_the_command() {
    let place = tempfile::tempdir().expect("a directory");
    let place = place.path();
    fs::write(place.join("a"), "1\n2\n3\n").expect("written");
    let printed = prints_in(place, &["compare", "a", "a", "--format", "json"]);
    let earlier = printed.replace("  \"better\": \"lower\",\n", "");
    assert_ne!(earlier, printed);
    fs::write(place.join("document.json"), earlier).expect("written");
    let message = "use `numalab compare A B`";
    refused(&mut numalab_in(place, &["report", "document.json"]), 2, &[message]);
}

/// Moves the result that a command has just kept from `results` to a new directory.
fn kept(place: &Path) -> TempDir {
    let results = place.join("results");
    let mut made = fs::read_dir(&results).expect("a directory").map(|made| made.expect("readable"));
    let to = tempfile::tempdir_in(place).expect("a directory");
    fs::rename(made.next().expect("a result").path(), to.path()).expect("moved");
    to
}

/// Each command runs once, in a different format.
#[test]
fn a_measuring_command_prints_the_report_of_its_kept_result_in() {
    let place = tempfile::tempdir().expect("a directory");
    let place = place.path();
    let commands: [(&str, &[&str]); 5] = [
        ("csv", &["latency", "--size", "64K"]),
        ("md", &["bandwidth", "--kernel", "read"]),
        ("html", &["loaded"]),
        ("json", &["c2c"]),
        ("csv", &["measure", "--quick"]),
    ];
    let short = ["--budget", "1s", "--quiet", "-o", "results"];
    for (format, command) in commands {
        let printed = prints_in(place, &[command, &short, &["--format", format]].concat());
        let result = kept(place);
        let result = result.path().to_str().expect("UTF-8");
        let reported = prints_in(place, &["report", result, "--format", format]);
        assert!(printed == reported, "{command:?}: printed {printed}, reported {reported}");
    }
    let trials = ["compare", "--commands", "true", "true", "--blocks", "1", "--quiet", "-o"];
    let printed = prints_in(place, &[&trials[..], &["results", "--format", "csv"]].concat());
    let study = kept(place);
    let study = study.path().to_str().expect("UTF-8");
    assert_eq!(printed, prints_in(place, &["report", study, "--format", "csv"]));
    let ranks = ["latency", "--ranks", "1", "--size", "64K", "--iterations", "100"];
    all_print_documents(place, &[&ranks]);
}

#[test]
fn every_question_to_a_system_is_answered_with_a_document() {
    let place = tempfile::tempdir().expect("a directory");
    let place = place.path();
    prints_in(
        place,
        &["machine", "acpi", "build", "--emulate", "2", "--cpus", "4", "-o", "tables"],
    );
    let heap = "(XEN) NODE0 start->0 size->99 free->1\n(XEN) Domain 1 (total: 8):\n    Node 0: 8\n";
    fs::write(place.join("console.log"), heap).expect("written");
    let own = std::process::id().to_string();
    let commands: [&[&str]; 15] = [
        &["machine", "list"],
        &["topology"],
        &["topology", "--emulate", "4", "--cpus", "8"],
        &["machine", "acpi", "show", "tables/SRAT.bin", "tables/SLIT.bin"],
        &["machine", "acpi", "check", "tables/SRAT.bin", "tables/SLIT.bin"],
        &["explore", "--interval", "1ms"],
        &["explore", "--pid", &own],
        &["explore", "--guests"],
        &["explore", "--heap", "console.log"],
        &["knobs", "list"],
        &["study", "probe", "balancing", "--size", "1M", "--time", "50ms"],
        &["study", "list"],
        &["study", "settings"],
        &["study", "show", "noise"],
        &["study", "run", "--dry-run", "noise"],
    ];
    all_print_documents(place, &commands);
}

/// A result without figures has no CSV, and the error lists the formats it has.
#[test]
fn a_format_without_a_meaning_is_refused_with_those_that_have_one() {
    let place = tempfile::tempdir().expect("a directory");
    let place = place.path();
    for words in [&["study", "show", "noise"][..], &["study", "run", "noise", "--dry-run"]] {
        let words = [words, &["--format", "csv"]].concat();
        refused(&mut numalab_in(place, &words), 2, &["expected text, json, md or html"]);
    }
    let nodes = ["explore", "--nodes", "--format", "callgrind"];
    refused(&mut numalab_in(place, &nodes), 2, &["text, json, csv, md, html, openmetrics"]);
    let run = examples().join("run").display().to_string();
    let report = ["report", &run, "--format", "callgrind"];
    refused(&mut numalab_in(place, &report), 2, &["not a program's memory"]);
}

#[test]
fn two_studies_compared_have_each_caption_once_in_markdown() {
    let text = prints_in(&examples(), &["compare", "study", "study", "--format", "md"]);
    let captions = text.lines().filter(|line| !line.is_empty() && !line.starts_with('|'));
    for caption in captions {
        assert_eq!(text.lines().filter(|line| *line == caption).count(), 1, "{caption}: {text}");
    }
}
