//! `numalab advise` from outside: its advice for programs with a known right placement, and a
//! comparison of predictions with trials.

mod bench;
mod languages;
mod table;

use std::fs;
use std::process::{Command, Output};

use crate::programs::lab::{Lab, lab, line_of};
use serde_json::{Value, json};

/// A machine with caches too small for the quarters of a 2 MiB block.
const SMALL_CACHES: [&str; 4] =
    ["--emulate=2", "--cpus=8", "--emulate-cache=32K,256K", "--emulate-stages=core,owners"];

fn run(lab: &Lab, machine: &[&str], options: &[&str], command: &[&str]) -> Output {
    let mut run = Command::new(env!("CARGO_BIN_EXE_numalab"));
    run.env("NUMALAB_EMULATOR", &lab.plugin).arg("advise").args(machine).args(options);
    run.arg("--").args(command).output().expect("it starts")
}

fn advise(lab: &Lab, options: &[&str], command: &[&str]) -> (Option<i32>, String) {
    let output = run(lab, &SMALL_CACHES, options, command);
    let text = [output.stdout, output.stderr].concat();
    let words = String::from_utf8_lossy(&text).into_owned();
    (output.status.code(), words.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Returns the advice as a document, and the messages printed with it.
fn advice(lab: &Lab, machine: &[&str], options: &[&str], command: &[&str]) -> (Value, String) {
    let output = run(lab, machine, &[options, &["--format", "json"]].concat(), command);
    let notes = String::from_utf8_lossy(&output.stderr).into_owned();
    let advice = serde_json::from_slice(&output.stdout);
    (advice.unwrap_or_else(|error| panic!("{error}: {notes}")), notes)
}

/// Returns the measured change in percent, which must be as predicted.
fn change_as_predicted(option: &Value) -> f64 {
    let number = |value: &Value| value.as_f64().expect("a number");
    let interval = &option["predicted"]["interval_percent"];
    let measured = number(&option["measured"]["change_percent"]);
    assert!((number(&interval[0])..number(&interval[1])).contains(&measured), "{option:#}");
    measured
}

/// Returns an option's command line for a tool.
fn command_of<'a>(option: &'a Value, tool: &str) -> &'a str {
    let lines = option["commands"].as_array().expect("commands");
    let line = lines.iter().find(|line| line["tool"] == tool).expect("a command of the tool");
    line["command"].as_str().expect("a command")
}

#[test]
fn a_compute_bound_program_gets_the_answer_no_gain_at_once() {
    let Some(lab) = lab() else { return };
    let (code, text) = advise(lab, &[], &[&lab.program("answers"), "compute"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.starts_with("No gain possible: "), "the answer comes first: {text}");
}

#[test]
fn advice_is_predicted_and_proven_and_names_the_line() {
    let Some(lab) = lab() else { return };
    let command = [&lab.program("answers"), "first-touch", "2"];
    let (advice, _) = advice(lab, &SMALL_CACHES, &["--try", "1", "--blocks", "6"], &command);
    assert_eq!(advice["schema"], "numalab/advice-1");
    let options = advice["options"].as_array().expect("options");
    let by_users = options.iter().find(|option| option["candidate"]["first-touch"].is_object());
    let line = by_users.expect("an option")["candidate"]["first-touch"]["line"].as_str();
    assert!(line.is_some_and(|line| line.ends_with(&line_of("FIRST"))), "{line:?}");
    let tried = options.iter().find(|option| option["measured"].is_object());
    let tried = tried.expect("something was tried");
    assert_eq!(tried["measured"]["verdict"], "better", "{tried:#}");
}

#[test]
fn the_predicted_saving_of_huge_pages_is_reached() {
    let Some(lab) = lab() else { return };
    let machine =
        ["--emulate=1", "--cpus=4", "--emulate-cache=8K,16K", "--emulate-stages=core,tlb"];
    let command = [&lab.program("answers"), "scattered", "12"];
    let (advice, _) = advice(lab, &machine, &["--blocks", "6"], &command);
    let options = advice["options"].as_array().expect("options");
    assert_eq!(options.len(), 1, "a machine of one node has nothing to bind to: {options:?}");
    assert_eq!(options[0]["candidate"], "huge-pages");
    assert_eq!(options[0]["measured"]["verdict"], "better", "{options:?}");
    // Page table entries leave the caches to data, an effect that predictions ignore.
    assert!(change_as_predicted(&options[0]) < -10.0, "{options:?}");
    let command = command_of(&options[0], "numalab");
    assert!(command.starts_with("numalab knobs run -q thp_enabled=always -- "), "{command}");
}

#[test]
fn neighbours_that_share_memory_are_packed_on_a_node() {
    let Some(lab) = lab() else { return };
    let machine =
        ["--emulate=2", "--cpus=6", "--emulate-cache=32K,256K", "--emulate-stages=core,owners"];
    let command = [&lab.program("answers"), "neighbours", "2"];
    let (advice, _) = advice(lab, &machine, &["--try", "1", "--blocks", "6"], &command);
    let options = advice["options"].as_array().expect("options");
    let pack = options.iter().find(|option| option["candidate"] == "pack").expect("an option");
    assert_eq!(pack["measured"]["verdict"], "better", "{options:#?}");
    change_as_predicted(pack);
    let command = command_of(pack, "OpenMP");
    assert!(command.starts_with("OMP_PLACES=cores OMP_PROC_BIND=close "), "{command}");
    let pinned = command_of(pack, "likwid-pin");
    assert!(pinned.starts_with("likwid-pin -c M0:0-2@M1:0-2 "), "{pinned}");
}

#[test]
fn a_program_that_fails_or_leaves_something_running_is_not_advised() {
    let Some(lab) = lab() else { return };
    let (code, text) = advise(lab, &[], &["sh", "-c", "echo no licence >&2; exit 3"]);
    assert_eq!(code, Some(1));
    assert!(text.contains("ended with exit status: 3: no licence"), "{text}");
    let (code, text) = advise(lab, &[], &["sh", "-c", "sleep 600 & true"]);
    assert_eq!(code, Some(1));
    assert!(text.contains("running, now terminated"), "{text}");
    let (code, _) = advise(lab, &["--predict-only"], &["no-such-program"]);
    assert_eq!(code, Some(127));
}

/// Without the emulator's library there are only trials, and no predictions.
#[test]
fn trials_on_this_machine_do_without_the_emulator() {
    let without = |option: &str| {
        let mut run = Command::new(env!("CARGO_BIN_EXE_numalab"));
        run.env("NUMALAB_EMULATOR", "/no/such/library").args(["advise", option, "--", "true"]);
        let output = run.output().expect("it starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = without("--dry-run");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("candidates are tried without predictions: "), "{said}");
    let (code, said) = without("--predict-only");
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("NUMALAB_EMULATOR=/no/such/library: no such file"), "{said}");
}

#[test]
fn indecisive_trial_counts_and_texts_that_are_not_numbers_are_refused() {
    let Some(lab) = lab() else { return };
    for (options, expected) in [
        (["--blocks", "5"], "expected 6 or more: fewer give no interval"),
        (["--try", "0"], "expected 1 to 16, or all"),
        (["--try", "some"], "expected 1 to 16, or all"),
        (["--metric", "rate x/s"], "--metric: pattern \"rate x/s\" has 0 places for a number"),
        (["--metric", "{a} of {b}"], "--metric: pattern \"{a} of {b}\" has 2 places for a number"),
        (["--metric", "{}"], "--metric: pattern \"{}\" has no text besides the number"),
        (["--metric-regex", "rate"], "--metric-regex: regular expression \"rate\" has 0 groups"),
        (
            ["--metric-regex", "("],
            "--metric-regex: regular expression \"(\": error: unclosed group",
        ),
        (["--metric-regex", "took ([0-9.]+)"], "--metric-regex: expected --better lower or"),
        (["--metric", "Triad: {}"], "such as {MB/s}, or --better lower or --better higher"),
        (["--better", "higher"], "--metric <PATTERN>"),
        (["--with", "numactl"], "--with: expected --try-on guest as well"),
        (["--try-on", "host"], "--try-on host: candidates run on this machine"),
    ] {
        let (code, text) = advise(lab, &options, &["true"]);
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_likely_gain_is_tried_with_enough_blocks_to_exclude_chance() {
    let Some(lab) = lab() else { return };
    let command = [&lab.program("answers"), "table", "1"];
    let (full, notes) = advice(lab, &SMALL_CACHES, &["--blocks", "6", "--to-the-end"], &command);
    let note = "6 blocks are too few for a verdict on 2 candidates: running 7";
    assert!(notes.contains(note), "{notes}");
    let at = |options: &[Value], name: &str| {
        let position = options.iter().position(|option| option["candidate"][name].is_object());
        position.expect("an option")
    };
    let options = full["options"].as_array().expect("options");
    let spread = &options[at(options, "interleave")];
    let worst = spread["predicted"]["interval_percent"][1].as_f64();
    assert!(worst.is_some_and(|worst| worst > 0.0), "its interval reaches beyond none: {spread}");
    assert_eq!(spread["measured"]["verdict"], "better", "{spread}");
    assert!(
        full["trials"]["again_percent"].is_array(),
        "what differs where nothing does: {full:#}"
    );
    // The candidate is better than the unchanged program, but cannot win against binding.
    let (early, _) = advice(lab, &SMALL_CACHES, &["--blocks", "6"], &command);
    let options = early["options"].as_array().expect("options");
    let (spread, bind) = (&options[at(options, "interleave")], at(options, "bind"));
    assert_eq!(spread["measured"]["out"], json!({"blocks": 3, "behind": bind}), "{spread}");
    assert_eq!(options[bind]["measured"]["verdict"], "better", "{options:#?}");
}

#[test]
fn trials_judge_by_the_number_that_a_program_prints() {
    let Some(lab) = lab() else { return };
    let script = format!("{} one-node 1; echo done at a rate of 5.5 x/s", lab.program("answers"));
    let options = ["--metric", "rate of {x/s}", "--better", "higher", "--try", "1", "--to-the-end"];
    let with = |more: [&str; 2], script: &str| {
        advise(lab, &[&options[..], &more[..]].concat(), &["sh", "-c", script])
    };
    let kept = tempfile::tempdir().expect("a directory");
    let place = kept.path().to_str().expect("UTF-8");
    let (code, text) = with(["--keep", place], &script);
    assert_eq!(code, Some(0), "{text}");
    let trials = fs::read_dir(place).expect("readable").next().expect("trials").expect("readable");
    let mut report = Command::new(env!("CARGO_BIN_EXE_numalab"));
    let report = report.args(["report", "--format", "md"]).arg(trials.path()).output();
    let report = String::from_utf8_lossy(&report.expect("it starts").stdout).into_owned();
    assert!(report.contains("x/s"), "the trials are a study: {report}");
    assert!(
        text.contains("0.0 (0.0 to 0.0) equivalent"),
        "the rate is the same everywhere: {text}"
    );
    assert!(text.contains("measured for the metric (x/s), higher is better"), "{text}");
    for words in ["echo no number", "echo a rate of none x/s"] {
        let (code, text) = with(["--blocks", "6"], words);
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains("expected a line that matches its pattern"), "{text}");
    }
}

#[test]
fn a_budget_without_room_for_trials_leaves_predictions_and_says_so() {
    let Some(lab) = lab() else { return };
    let options = ["--format", "json", "--budget", "100ms"];
    let (code, text) = advise(lab, &options, &[&lab.program("answers"), "one-node", "1"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("the budget is too short for trials: a trial takes"), "{text}");
    assert!(text.contains("\"predicted\"") && !text.contains("\"measured\""), "{text}");
}

#[test]
fn a_program_that_ends_at_once_or_prints_varying_text_is_reported() {
    let Some(lab) = lab() else { return };
    let (code, text) = advise(lab, &["--predict-only"], &["true"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("true ends after"), "{text}");
    let script = format!("{} one-node 1; echo $$", lab.program("answers"));
    let (code, text) = advise(lab, &["--try", "1", "--blocks", "6"], &["sh", "-c", &script]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("the program's output is not the same in every run"), "{text}");
}

#[test]
fn a_program_that_waits_for_a_terminal_finds_no_input_and_ends() {
    let Some(lab) = lab() else { return };
    let (code, text) = advise(lab, &["--predict-only"], &["sh", "-c", "read answer || exit 5"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("ended with exit status: 5"), "{text}");
}

#[test]
fn quietly_the_one_command_to_use_is_printed() {
    let Some(lab) = lab() else { return };
    let options = ["--predict-only", "--quiet"];
    let (code, text) = advise(lab, &options, &[&lab.program("answers"), "one-node"]);
    assert_eq!(code, Some(0), "{text}");
    let expected = [0, 1].map(|node| {
        format!("numalab bind -q --numa={node} --cpus node -- {} one-node", lab.program("answers"))
    });
    assert!(expected.contains(&text), "{text}");
    let (_, text) = advise(lab, &options, &[&lab.program("answers"), "compute"]);
    assert_eq!(text, format!("{} compute", lab.program("answers")));
}
