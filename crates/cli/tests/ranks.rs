//! Ranks and their binding, from outside and without a cluster.

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn numalab(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_numalab"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What the command prints if it ends with `code`.
fn ends(command: &mut Command, code: i32) -> String {
    let output = command.output().expect("numalab starts");
    assert_eq!(output.status.code(), Some(code), "{command:?}: {}", stderr(&output));
    if code == 0 { stdout(&output) } else { stderr(&output) }
}

/// The first node with memory, as the kernel numbers it.
fn a_node() -> String {
    let listed = std::fs::read_to_string("/sys/devices/system/node/has_memory");
    let listed = listed.unwrap_or_else(|_| "0".to_owned());
    listed.trim().split([',', '-']).next().expect("a node").to_owned()
}

#[test]
fn a_bound_command_runs_under_the_policy_of_its_rank() {
    let option = format!("--numa={}", a_node());
    for (policy, word) in [("bind", "bind"), ("preferred", "prefer"), ("interleave", "interleave")]
    {
        let show = format!("grep -m1 -o '{word}:{}' /proc/self/numa_maps", a_node());
        let shown = ends(
            &mut numalab(&["bind", &option, "--policy", policy, "-q", "--", "sh", "-c", &show]),
            0,
        );
        assert!(shown.starts_with(word), "{policy}: {shown}");
    }
}

#[test]
fn binding_prints_the_suites_lines_and_passes_the_exit_code_on() {
    let option = format!("--numa={}", a_node());
    let command = ["bind", &option, "--", "sh", "-c", "exit 7"];
    let output = numalab(&command).env("NUMALAB_RANK", "1").env("NUMALAB_RANKS", "2").output();
    let output = output.expect("numalab starts");
    assert_eq!(output.status.code(), Some(7));
    let expected = format!(
        "[Rank 1] Binding to NUMA domain {0}\n[Rank 1] Executing: numactl --membind={0} sh -c exit 7\n",
        a_node()
    );
    assert_eq!(stdout(&output), expected);
}

#[test]
fn options_alone_are_those_of_latency_and_a_dry_run_starts_nothing() {
    let shown = ends(&mut numalab(&["bind", "--dry-run", "--", "--size=2048"]), 0);
    assert!(shown.contains("No --numa given: binding to node 0"), "{shown}");
    assert!(shown.trim_end().ends_with("latency --size=2048"), "{shown}");
    let shown =
        ends(&mut numalab(&["bind", "--dry-run", "--executable", "/no/such", "--", "--csv=x"]), 0);
    assert!(shown.contains("/no/such --csv=x"), "{shown}");
    assert!(!Path::new("x").exists());
}

#[test]
fn bindings_that_cannot_be_are_refused_with_what_could_be() {
    let two = format!("--numa={0},{0}", a_node());
    let error = ends(&mut numalab(&["bind", &two, "--", "true"]), 125);
    assert!(error.contains("srun or mpirun"), "{error}");
    let mut of_three = numalab(&["bind", &two, "--", "true"]);
    let error = ends(of_three.env("NUMALAB_RANK", "0").env("NUMALAB_RANKS", "3"), 125);
    assert!(error.contains("2 nodes for 3 ranks"), "{error}");
    let error = ends(&mut numalab(&["bind", "--numa=900", "--", "true"]), 125);
    assert!(error.contains("node 900"), "{error}");
    let error = ends(&mut numalab(&["bind", "--numa=x", "--", "true"]), 125);
    assert!(error.contains("expected a node"), "{error}");
    let error = ends(&mut numalab(&["bind", "--numa=auto", "--", "/no/such/program"]), 127);
    assert!(error.contains("/no/such/program"), "{error}");
}
