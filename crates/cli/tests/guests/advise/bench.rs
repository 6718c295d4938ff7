//! Compares predictions with trials for programs with a known right placement, on machines of the
//! gallery.

use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{available_parallelism, scope};

use serde_json::Value;

use super::table::{Case, inside, markdown, no_gains, row, winners};
use crate::programs::known::{REAL, SYNTHETIC};
use crate::programs::lab::{Lab, lab, line_of};

/// A machine: its name, and the options that describe it.
type Machine = (&'static str, &'static [&'static str]);

/// Small caches, so that small programs use memory.
const SMALL: Machine = (
    "2 nodes, 4 cpus",
    &["--emulate", "2", "--cpus", "4", "--emulate-cache", "32K,256K", "--emulate-stages", STAGES],
);
const STAGES: &str = "core,owners";
/// Gallery machines with several nodes, except the one of eight nodes, which takes hours.
const GALLERY: [Machine; 3] = [
    ("xeon-8360y-2s", &["--emulate-like", "xeon-8360y-2s"]),
    ("x460", &["--emulate-like", "x460"]),
    ("epyc-7452-cxl", &["--emulate-like", "epyc-7452-cxl"]),
];
/// Blocks that suffice to tell each of four candidates from chance; for more candidates, more are
/// run.
const BLOCKS: &str = "8";

/// Programs of `answers.c`, by its arguments.
const SHORT: [&str; 3] = ["table 1", "one-node 1", "compute 1"];

fn case(lab: &Lab, program: &str, machine: Machine, command: &[String]) -> Option<Case> {
    let mut run = Command::new(env!("CARGO_BIN_EXE_numalab"));
    run.env("NUMALAB_EMULATOR", &lab.plugin).env("LAB", &lab.directory).arg("advise");
    run.args(machine.1).args(["--try", "all", "--blocks", BLOCKS, "--to-the-end"]);
    run.args(["--format", "json", "--"]);
    let output = run.args(command).output().expect("it starts");
    if !output.status.success() {
        println!("FAILED: {program}: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    let advice: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    names_what_was_planted(program, &advice);
    Some(Case::of(program, machine.0, &advice))
}

/// Checks that bad first touch and false sharing are reported with file and line where they are an
/// option.
fn names_what_was_planted(program: &str, advice: &Value) {
    let options = advice["options"].as_array().expect("options");
    let candidates = || options.iter().map(|option| &option["candidate"]);
    if program.starts_with("first-touch") {
        let lines = candidates().filter_map(|of| of["first-touch"]["line"].as_str());
        lines.for_each(|line| assert!(line.ends_with(&line_of("FIRST")), "{line}"));
    }
    if program.starts_with("false-sharing") {
        let lines = candidates().filter_map(|of| of["separate-lines"]["lines"].as_array());
        let names = |lines: &Vec<Value>| {
            lines
                .iter()
                .any(|line| line.as_str().is_some_and(|line| line.ends_with(&line_of("COUNTS"))))
        };
        assert!(lines.into_iter().all(names), "{advice:#}");
    }
}

/// A program's name, and its command line.
type Program = (&'static str, Vec<String>);

fn synthetic(lab: &Lab, programs: &[&'static str]) -> Vec<Program> {
    let answers = lab.program("answers");
    let words = |program: &str| {
        let words = program.split(' ').map(str::to_owned);
        [answers.clone()].into_iter().chain(words).collect()
    };
    programs.iter().map(|program| (*program, words(program))).collect()
}

fn real() -> impl Iterator<Item = Program> {
    REAL.iter().map(|(name, script)| (*name, ["sh", "-c", script].map(str::to_owned).to_vec()))
}

/// Runs one case per CPU at a time: virtual time does not depend on the host's load.
fn cases(lab: &Lab, machine: Machine, programs: &[Program]) -> Vec<Case> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((name, words)) = programs.get(at) else { return };
            if let Some(case) = case(lab, name, machine, words) {
                println!("{}", row(&case));
                found.lock().unwrap().push((at, case));
            }
        }
    };
    scope(|scope| {
        for _ in 0..available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut found = found.into_inner().unwrap();
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, case)| case).collect()
}

#[test]
fn predictions_agree_with_trials_on_a_machine_of_small_caches() {
    let Some(lab) = lab() else { return };
    let cases = cases(lab, SMALL, &synthetic(lab, &SHORT));
    let text = markdown(&cases);
    println!("{text}");
    assert_eq!(cases.len(), SHORT.len(), "{text}");
    assert!(inside(&cases).is_at_least(80), "{text}");
    assert!(winners(&cases, Case::predicted_best).is_at_least(95), "{text}");
    assert!(winners(&cases, Case::advised).is_at_least(95), "{text}");
    assert!(no_gains(&cases).all > 0 && no_gains(&cases).is_at_least(95), "{text}");
}

#[test]
fn predictions_agree_with_trials_on_machines_of_the_gallery() {
    if std::env::var_os("NUMALAB_LONG").is_none_or(|value| value != "1") {
        println!("NOT RUN: the gallery's machines, without NUMALAB_LONG=1");
        return;
    }
    let Some(lab) = lab() else { return };
    let only = |what: &str| std::env::var(what).ok();
    let mut programs = synthetic(lab, &SYNTHETIC);
    programs.extend(real());
    if let Some(names) = only("NUMALAB_BENCH_PROGRAMS") {
        programs.retain(|(program, _)| names.split(',').any(|name| name == *program));
    }
    let only = only("NUMALAB_BENCH_MACHINE");
    let is_meant = |machine: &Machine| only.as_ref().is_none_or(|only| only == machine.0);
    let machines: Vec<Machine> = [SMALL].into_iter().chain(GALLERY).filter(is_meant).collect();
    let cases: Vec<Case> =
        machines.iter().flat_map(|machine| cases(lab, *machine, &programs)).collect();
    println!("{}", markdown(&cases));
    assert!(cases.len() * 5 >= programs.len() * machines.len() * 4, "{} cases", cases.len());
    assert!(!cases.is_empty(), "no machine {only:?}");
    assert!(inside(&cases).is_at_least(80));
    assert!(winners(&cases, Case::predicted_best).is_at_least(95));
    assert!(winners(&cases, Case::advised).is_at_least(95));
    assert!(no_gains(&cases).is_at_least(95));
}
