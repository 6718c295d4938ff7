//! Comparisons from outside, with published figures as known answers.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::command::{ends, numalab_in, refuses};
use crate::schemas;

/// Run times in seconds, published with a NUMA-aware frame allocator and without one, and
/// a speedup of 7.88 %.
const AWARE: [&str; 20] = [
    "9.149", "8.950", "8.542", "8.981", "8.850", "9.611", "9.572", "9.757", "9.150", "9.118",
    "9.524", "8.713", "9.345", "9.046", "9.051", "10.058", "8.740", "9.266", "9.550", "9.047",
];
const UNAWARE: [&str; 20] = [
    "9.362", "9.963", "8.672", "9.138", "9.298", "8.827", "8.833", "10.458", "10.170", "10.417",
    "9.502", "10.010", "10.125", "9.907", "10.143", "10.313", "10.368", "11.712", "11.376",
    "9.932",
];

fn with_files(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        fs::write(directory.path().join(name), text).expect("written");
    }
    directory
}

/// Returns the log of runs as published, with the average at its end.
fn log(runs: &[&str], average: &str) -> String {
    let lines = runs.iter().enumerate();
    let mut text: String =
        lines.map(|(n, t)| format!("Run #{}:\nTime elapsed: {t} s\n", n + 1)).collect();
    text.push_str(&format!("Average Time elapsed over 20 runs: {average} s\n"));
    text
}

#[test]
fn twenty_and_twenty_published_runs_give_their_published_gain_but_no_verdict_as_they_drift() {
    let (old, new) = (log(&UNAWARE, "9.926"), log(&AWARE, "9.201"));
    let place = with_files(&[("old.log", &old), ("new.log", &new)]);
    let metric = "Time elapsed: {seconds} s";
    let arguments = ["compare", "old.log", "new.log", "--metric", metric];
    let (text, _) = ends(&mut numalab_in(place.path(), &arguments), 0);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "Inconclusive -7.",
        "undecided because the values rise or fall in the order taken",
        "old.log: values rise in the order taken (p = 0.00",
        "+7.88 %",
        "Hodges-Lehmann",
        "not paired",
        "median (seconds)",
    ] {
        assert!(flat.contains(words), "no `{words}` in:\n{text}");
    }
    let (json, _) =
        ends(&mut numalab_in(place.path(), &[&arguments[..], &["--format", "json"]].concat()), 0);
    let json = schemas::document(&json);
    assert_eq!(json["baseline"]["values"].as_array().map(Vec::len), Some(20));
    let number = |value: &Value| value.as_f64().expect("a number");
    let gain = number(&json["gain_of_means_percent"]);
    assert!((gain - 7.88).abs() < 0.005, "{gain}");
    // Fieller's interval with Welch's degrees of freedom, by scipy (stats: tests/reference).
    let interval = &json["gain_of_means_interval_percent"];
    let (low, high) = (number(&interval[0]), number(&interval[1]));
    assert!(
        (low - 3.493_485_704_173_2).abs() < 1e-9 && (high - 12.350_900_749_821_15).abs() < 1e-9,
        "{low} to {high}"
    );
    assert_eq!(json["drifts"], serde_json::json!([true, false]));
    // In the opposite direction drift leaves it undecided: a script sees neither success nor "worse".
    let turned = ["compare", "new.log", "old.log", "--metric", metric, "--fail-if", "worse"];
    let (_, err) = ends(&mut numalab_in(place.path(), &turned), 7);
    assert!(err.contains("not decided against new.log: "), "{err}");
}

#[test]
fn fail_if_worse_means_worse_by_more_than_the_margin() {
    let shifted = |by: f64| -> String {
        (0..20).map(|n| format!("{} ", 100.0 + by + f64::from(n * 7 % 20) / 10.0)).collect()
    };
    let (old, new) = (shifted(0.0), shifted(3.0));
    let place = with_files(&[("a", &old), ("b", &new)]);
    let with_margin = |margin, code| {
        let arguments = ["compare", "a", "b", "--fail-if", "worse", "--margin", margin];
        ends(&mut numalab_in(place.path(), &arguments), code)
    };
    // Worse by 2.3 to 3.5 %, so not certainly by 2.8 %.
    let (text, _) = with_margin("2.8", 0);
    assert!(text.contains("\nWorse\n  +2."), "{text}");
    let (_, err) = with_margin("1", 4);
    assert!(err.contains("worse than a by more than 1 %"), "{err}");
}

#[test]
fn files_of_numbers_may_have_comments_and_any_separators() {
    let aware = AWARE.join(", ");
    let unaware = format!("# seconds\n{}\n", UNAWARE.join("\n"));
    let place = with_files(&[("a.txt", &unaware), ("b.csv", &aware)]);
    let (text, _) =
        ends(&mut numalab_in(place.path(), &["compare", "a.txt", "b.csv", "--format", "md"]), 0);
    assert!(text.contains("| a.txt | 20 |") && text.contains("+7.88 %"), "{text}");
    let (page, _) =
        ends(&mut numalab_in(place.path(), &["compare", "a.txt", "b.csv", "--format", "html"]), 0);
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("Inconclusive"), "{page}");
    let same = ["compare", "b.csv", "b.csv", "--margin", "10"];
    let (text, said) = ends(&mut numalab_in(place.path(), &same), 0);
    assert!(text.contains("\nEquivalent within 10 %"), "{text}");
    assert!(
        said.contains("b.csv and b.csv are the same place: it does not differ from itself"),
        "{said}"
    );
}

#[test]
fn a_byte_order_mark_is_not_part_of_the_first_number() {
    let values = UNAWARE.join("\n");
    let place = with_files(&[("plain", &values), ("marked", &format!("\u{feff}{values}"))]);
    let (text, _) = ends(&mut numalab_in(place.path(), &["compare", "plain", "marked"]), 0);
    assert!(text.contains("\nEquivalent") || text.contains("+0.00 %"), "{text}");
}

#[test]
fn p_values_that_the_parts_of_the_files_raised_are_not_called_the_rank_sum_tests() {
    let values: String = (0..60).map(|n| format!("{}\n", 100 + n * 7 % 11)).collect();
    let place = with_files(&[("a", &values), ("few", "1 2 3 4")]);
    let said = |files: [&str; 2]| {
        let (text, _) = ends(&mut numalab_in(place.path(), &["compare", files[0], files[1]]), 0);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let parts = "The larger p of the rank-sum test and the parts decides: for a difference: p = ";
    assert!(said(["a", "a"]).contains(parts), "{}", said(["a", "a"]));
    let few = said(["few", "few"]);
    assert!(few.contains("Rank-sum test of a difference: p = "), "{few}");
}

/// Makes a run of another day from the example: each cell differs a little, those that contain
/// `slow` by half.
fn run_of(place: &Path, number: u64, slow: Option<&str>) -> String {
    let example = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/run"));
    let text = |name| fs::read_to_string(example.join(name)).expect("text");
    let copy = place.join(number.to_string());
    fs::create_dir_all(&copy).expect("made");
    let mut head: Value = serde_json::from_str(&text("run.json")).expect("JSON");
    let began = head["started_unix_ms"].as_u64().expect("a time");
    head["started_unix_ms"] = (began + number * 86_400_000).into();
    let line = |line: &str| {
        let mut fields: Vec<String> = line.split(',').map(str::to_owned).collect();
        if let Ok(value) = fields[3].parse::<f64>() {
            let cell: u64 = fields[0].bytes().map(u64::from).sum();
            let noise = (cell * 31 + number * 17) % 23;
            let change = if slow == Some(fields[0].as_str()) { 1.5 } else { 1.0 };
            fields[3] = (value * change * (1.0 + 0.0005 * noise as f64)).to_string();
        }
        fields.join(",") + "\n"
    };
    let samples: String = text("samples.csv").lines().map(line).collect();
    let files = [head.to_string(), text("cells.jsonl"), samples];
    for (name, text) in ["run.json", "cells.jsonl", "samples.csv"].iter().zip(files) {
        fs::write(copy.join(name), text).expect("written");
    }
    copy.display().to_string()
}

#[test]
fn a_figure_out_of_line_in_the_only_new_run_leaves_the_gate_undecided() {
    let place = tempfile::tempdir().expect("a directory");
    let baseline: Vec<String> = (1..=5).map(|number| run_of(place.path(), number, None)).collect();
    let compared = |candidate: &str, code| {
        let mut arguments = vec!["compare", candidate, "--fail-if", "worse", "--baseline"];
        arguments.extend(baseline.iter().map(String::as_str));
        ends(&mut numalab_in(place.path(), &arguments), code)
    };
    compared(&run_of(place.path(), 6, None), 0);
    let slow = "latency/page-local/thp/cpu2/node1/64M";
    let (text, err) = compared(&run_of(place.path(), 7, Some(slow)), 7);
    assert!(text.contains("1 cell is out of line in one run"), "{text}");
    assert!(err.contains("out of line in the only run of a side; measure again"), "{err}");
}

#[test]
fn runs_are_not_compared_with_themselves_as_their_baseline() {
    let results = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/fleet/hosts/n01");
    let arguments = ["compare", results, "--baseline", results];
    refuses(&arguments, 2, &["hold the same run: expected different runs"]);
}

#[test]
fn a_rate_improves_upwards_and_part_of_a_number_is_none() {
    let log = |from: u32| -> String {
        (0..20).map(|n| format!("bw = {}.5 GB/s\n", from + n * 7 % 3)).collect()
    };
    let place = with_files(&[("slow", &log(50)), ("fast", &log(60)), ("time", "real 0,004 s\n")]);
    let rate = ["compare", "slow", "fast", "--metric", "bw = {x}", "--fail-if", "worse"];
    let (text, _) = ends(&mut numalab_in(place.path(), &rate), 0);
    assert!(text.contains("slow · fast · higher is better"), "{text}");
    assert!(text.contains("\nBetter\n  +19.4 %"), "{text}");
    let time = ["compare", "time", "time", "--metric", "real {s}"];
    let (_, err) = ends(&mut numalab_in(place.path(), &time), 2);
    assert!(err.contains("its number is \"0,004\""), "{err}");
}

#[test]
fn single_runs_are_inconclusive() {
    let place = with_files(&[("on", "18.267\n"), ("off", "22.384\n")]);
    let (text, _) =
        ends(&mut numalab_in(place.path(), &["compare", "on", "off", "--fail-if", "worse"]), 7);
    assert!(text.contains("\nInconclusive: +22.5 %; at least 10 values on each side"), "{text}");
}

#[test]
fn two_commands_are_run_in_turns_and_judged() {
    let place = with_files(&[]);
    let commands = ["echo rate $((100 + $$ % 2))", "echo rate $((130 + $$ % 2))"];
    let arguments = [
        "compare",
        "--commands",
        commands[0],
        commands[1],
        "--metric",
        "rate {x/s}",
        "--better",
        "higher",
        "--blocks",
        "6",
        "--seed",
        "2",
    ];
    let (text, _) =
        ends(&mut numalab_in(place.path(), &[&arguments[..], &["--dry-run"]].concat()), 0);
    assert!(text.contains("21 samples in 7 blocks"), "{text}");
    assert!(!place.path().join("results").exists());
    let (text, _) = ends(&mut numalab_in(place.path(), &arguments), 0);
    assert!(text.contains("command A → B: better; shell value changes"), "{text}");
    let kept = fs::read_dir(place.path().join("results")).expect("results").next();
    let kept = kept.expect("a directory").expect("readable").path();
    let more = ["study", "resume", kept.to_str().expect("UTF-8"), "--blocks", "7"];
    let (page, _) =
        ends(&mut numalab_in(place.path(), &[&more[..], &["--format", "md"]].concat()), 0);
    assert!(page.contains("This is look 2 at a study that may be resumed"), "{page}");
    let turned = [
        "compare",
        "--commands",
        "sleep 0.05",
        "sleep 0.5",
        "--blocks",
        "6",
        "--quiet",
        "--fail-if",
        "worse",
    ];
    ends(&mut numalab_in(place.path(), &turned), 4);
}

#[test]
fn results_that_cannot_be_compared_are_exit_2_with_the_expected_form() {
    let place = with_files(&[
        ("a", "1 2\n3 x\n"),
        ("b", "1\n"),
        ("empty", ""),
        ("comma", "1,2,3\n100,5\n"),
        ("thousands", "1,234.5\n"),
    ]);
    for (arguments, words) in [
        (&["compare", "a", "b"][..], &["a, line 2: `x`", "--metric"][..]),
        (&["compare", "b", "empty"], &["empty: no values"]),
        (&["compare", "b", "comma"], &["comma, line 2: `100,5`", "such as 1.5"]),
        (&["compare", "b", "thousands"], &["`1,234.5`"]),
        (&["compare", "b", "nowhere"], &["nowhere"]),
        (&["compare", "b"], &["expected two result directories or two files"]),
        (&["compare"], &["<RESULT>"]),
        (&["compare", "--baseline", "b"], &["<RESULT>"]),
        (&["compare", "b", "b", "--metric", "x"], &["--metric", "x"]),
        (&["compare", "b", "b", "--metric", "y {y}"], &["b: no line matches"]),
        (&["compare", "b", "b", "--margin=-1"], &["margin", "0 to 1000"]),
        (&["compare", "b", "b", "--blocks", "3"], &["--blocks"]),
        (&["compare", "--commands", "a", "b", "--metric", "x"], &["x"]),
        (
            &["compare", "--commands", "a", "b", "--metric", "Triad: {}"],
            &["neither a time nor a rate", "--better higher", "{MB/s}"],
        ),
    ] {
        let (_, err) = ends(&mut numalab_in(place.path(), arguments), 2);
        for word in words {
            assert!(err.contains(word), "{arguments:?}: no `{word}` in: {err}");
        }
    }
}

#[test]
fn a_table_of_several_columns_is_refused_with_how_to_take_one() {
    let table = "# index time\n1 9.1\n2 9.2\n3 9.0\n";
    let place = with_files(&[("table", table), ("row", "9.1 9.2 9.0\n"), ("column", "9.1\n9.2\n")]);
    let refused = ["compare", "column", "table"];
    let (_, err) = ends(&mut numalab_in(place.path(), &refused), 2);
    assert!(err.contains("table, line 2 has 2 numbers: expected one per line"), "{err}");
    assert!(err.contains("cut -d' ' -f2 FILE") && err.contains("--metric"), "{err}");
    ends(&mut numalab_in(place.path(), &["compare", "column", "row"]), 0);
}

#[test]
fn places_without_a_number_are_left_out_with_a_note() {
    let log: String = (0..20).map(|run| format!("rate: {} MB/s\n", 1000 + run * 7 % 5)).collect();
    let place = with_files(&[("old", &log), ("new", &format!("rate: nan MB/s\n{log}"))]);
    let compare = ["compare", "old", "new", "--metric", "rate: {MB/s}"];
    let (out, err) = ends(&mut numalab_in(place.path(), &compare), 0);
    assert!(out.contains("Equivalent"), "{out}");
    assert!(err.contains("new: 1 times `nan` or `inf`") && !err.contains("old:"), "{err}");
}

#[test]
fn values_of_different_units_are_refused_unless_the_pattern_names_one() {
    let place = with_files(&[
        ("gb", "bw = 50 GB/s\nbw = 51 GB/s\n"),
        ("mb", "bw = 50000 MB/s\nbw = 51000 MB/s\n"),
        ("both", "bw = 50 GB/s\nbw = 900 MB/s\n"),
        ("none", "bw = 50 (average)\nbw = 51\n"),
    ]);
    let compare = |files: [&str; 2], metric: &str, code| {
        let arguments = ["compare", files[0], files[1], "--metric", metric];
        ends(&mut numalab_in(place.path(), &arguments), code)
    };
    for (files, words) in [
        (["gb", "mb"], "in `GB/s` (gb) and in `MB/s` (mb)"),
        (["gb", "both"], "in `GB/s` (gb) and in `MB/s` (both)"),
    ] {
        let (_, err) = compare(files, "bw = {x}", 2);
        assert!(err.contains(words) && err.contains("`bw = {x} GB/s`"), "{err}");
    }
    compare(["gb", "none"], "bw = {x}", 0);
    compare(["gb", "both"], "bw = {x} GB/s", 0);
}

/// Lower was taken to be better, so that a lost tenth of STREAM's bandwidth was an improvement.
#[test]
fn numbers_that_may_be_times_or_rates_are_not_judged_without_a_direction() {
    let log = |from: f64| -> String {
        (0..12).map(|n| format!("Triad: {:.1}\n", from + f64::from(n * 7 % 5))).collect()
    };
    let place = with_files(&[("a", &log(1000.0)), ("b", &log(900.0)), ("bare", "1\n2\n")]);
    let compare = |more: &[&str], code| {
        let arguments = [&["compare", "a", "b", "--fail-if", "worse"], more].concat();
        ends(&mut numalab_in(place.path(), &arguments), code)
    };
    let (_, err) = compare(&["--metric", "Triad: {}"], 2);
    assert!(err.contains("--better lower or --better higher"), "{err}");
    compare(&["--metric", "Triad: {MB/s}"], 4);
    compare(&["--metric", "Triad: {}", "--better", "higher"], 4);
    compare(&["--metric", "Triad: {}", "--better", "lower"], 0);
    let (_, err) = ends(&mut numalab_in(place.path(), &["compare", "bare", "bare"]), 0);
    assert!(err.contains("lower is taken to be better: --better higher"), "{err}");
}

#[test]
fn a_log_without_the_metric_is_refused_with_the_line_nearest_to_it() {
    let place = with_files(&[
        ("a", "time = 5 s\n"),
        ("b", "run 1\ntime: 5 s\n"),
        ("c", "x\n"),
        ("comma", "time = 5,27 s\n"),
    ]);
    let metric = ["--metric", "time = {s} s"];
    let compare = |file| {
        let arguments = [&["compare", "a", file][..], &metric].concat();
        ends(&mut numalab_in(place.path(), &arguments), 2).1
    };
    let err = compare("b");
    let words = "--metric: b: no line matches `time = {s} s`; line 2 is the nearest: `time: 5 s`";
    assert!(err.contains(words) && err.contains("awk"), "{err}");
    assert!(compare("comma").contains("numbers need a decimal point: LC_ALL=C"));
    let err = compare("c");
    assert!(err.contains("no line matches") && !err.contains("nearest"), "{err}");
}
