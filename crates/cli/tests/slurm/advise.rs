//! `numalab advise` under a real SLURM: on the cpus of an allocation, and for ranks that `srun`
//! starts in one.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::lab::{Lab, lab, text, turn};
use serde_json::Value;

const NUMALAB: &str = env!("CARGO_BIN_EXE_numalab");

/// Returns `numalab advise` with these arguments, started by a program of SLURM.
fn advise(lab: &Lab, starter: &[&str], words: &[&str]) -> Command {
    let mut command = lab.command(starter[0]);
    command.args(&starter[1..]).args([NUMALAB, "advise"]).args(words);
    command
}

fn output(mut command: Command) -> Output {
    command.output().expect("it starts")
}

fn document(output: &Output) -> Value {
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{message}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {message}"))
}

fn lines(file: &PathBuf) -> BTreeSet<String> {
    fs::read_to_string(file).expect("written").lines().map(str::to_owned).collect()
}

/// A step that ends by itself, after any wait of these tests, unless it is cancelled.
const STEP: &str = "sleep 97.6547";

const IN_JOB: [&str; 4] = ["salloc", "--quiet", "--nodes=1", "--exclusive"];

#[test]
fn trials_in_an_allocation_run_on_its_cpus_only() {
    let (_turn, Some(lab)) = (turn(), lab()) else { return };
    let seen = lab.directory().join("seen");
    let program = format!("grep Cpus_allowed_list /proc/self/status >>{}", seen.display());
    let words = ["--trials-only", "--blocks", "6", "--format", "json", "--", "sh", "-c", &program];
    let srun = ["srun", "-N1", "-n1", "-c1", "--cpu-bind=cores", "--unbuffered"];
    let advice = document(&output(advise(lab, &srun, &words)));
    let places = advice["machine"]["places"].as_array().expect("places");
    assert_eq!(places.len(), 1, "one cpu was asked for: {places:?}");
    let expected = format!("Cpus_allowed_list:\t{}", places[0]["cpu"]);
    assert_eq!(lines(&seen), [expected].into());
}

#[test]
fn ranks_are_tried_by_the_options_of_srun_within_an_allocation() {
    let (_turn, Some(lab)) = (turn(), lab()) else { return };
    let seen = lab.directory().join("placed");
    let program = format!("echo $SLURM_DISTRIBUTION $SLURM_CPU_BIND_TYPE >>{}", seen.display());
    let ranks = ["--", "srun", "-n2", "sh", "-c", &program];
    let options = ["--blocks", "8", "--to-the-end", "--format", "json"];
    let advice = document(&output(advise(lab, &IN_JOB, &[&options[..], &ranks].concat())));
    let options = advice["options"].as_array().expect("options");
    assert_eq!(options.len(), 3, "{options:#?}");
    for option in options {
        assert!(option["measured"]["change_percent"].is_number(), "{option:#}");
        let command = option["commands"][0]["command"].as_str().expect("a command");
        assert!(command.starts_with("srun --") && command.contains(" -n2 sh -c "), "{command}");
    }
    let placed = lines(&seen);
    for word in ["block:block", "block:cyclic", "mask_cpu"] {
        assert!(placed.iter().any(|line| line.contains(word)), "no {word}: {placed:?}");
    }
}

#[test]
fn several_tasks_or_an_allocation_of_several_nodes_are_refused() {
    let (_turn, Some(lab)) = (turn(), lab()) else { return };
    let refused = |starter: &[&str], command: &[&str], expected: &str| {
        let output = output(advise(lab, starter, command));
        let message = text(&output.stderr);
        assert!(!output.status.success() && message.contains(expected), "{message}");
    };
    refused(&["srun", "-N1", "-n2"], &["--", "true"], "expected one, as with srun -n1");
    refused(&["env"], &["--", "srun", "true"], "expected salloc -N1 --exclusive numalab advise");
    let two = ["salloc", "--quiet", "--nodes=2"];
    refused(&two, &["--", "srun", "true"], "an allocation of 2 nodes: expected one node");
    let said = ["--", "srun", "--cpu-bind=cores", "true"];
    refused(&IN_JOB, &said, "there is nothing to try");
}

#[test]
fn an_interrupt_ends_the_step_too() {
    let (_turn, Some(lab)) = (turn(), lab()) else { return };
    let pid = lab.directory().join("numalab.pid");
    // salloc does not forward signals to its command.
    let script = format!("{NUMALAB} advise -- srun -n1 {STEP} & echo $! >{}; wait", pid.display());
    let mut job = lab.command("salloc");
    job.args(&IN_JOB[1..]).args(["sh", "-c", &script]).stdout(Stdio::null()).stderr(Stdio::piped());
    let job = job.spawn().expect("it starts");
    waits_for("the step runs", || is_running(STEP));
    let number = fs::read_to_string(&pid).expect("written");
    let killed = Command::new("kill").args(["-INT", number.trim()]).status().expect("kill runs");
    assert!(killed.success());
    let message = text(&job.wait_with_output().expect("it ends").stderr);
    assert!(message.contains("`srun` was interrupted"), "{message}");
    waits_for("nothing is left", || !is_running(STEP));
}

/// Returns true if the command itself runs, and not only its starter: SLURM gives a program its
/// whole path.
fn is_running(command: &str) -> bool {
    let pattern = format!("^(/.*/)?{command}$");
    Command::new("pgrep").args(["-f", &pattern]).output().expect("pgrep").status.success()
}

fn waits_for(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
