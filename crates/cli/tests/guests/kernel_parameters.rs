//! Guests with parameters on Linux's command line.

use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

fn numalab(arguments: &[&str]) -> Output {
    let place = TempDir::new().expect("a directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_numalab"));
    command.args(arguments).stdin(Stdio::null());
    command.env("XDG_RUNTIME_DIR", place.path()).output().expect("numalab starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn isolated_cpus_are_named_and_left_out_and_can_be_asked_for() {
    let machine = ["guest", "run", "-q", "--emulate", "2", "--cpus", "4"];
    let script = "numalab topology -q && numalab latency -q --cpus 2 --nodes 1 --size 64K --budget 2s && \
                  numalab bind --numa=auto -- true 2>&1; numalab bind --numa=1 --cpus node -- true 2>&1; true";
    let end = ["--append", "isolcpus=2-3", "--", "sh", "-c", script];
    let output = numalab(&[&machine[..], &end].concat());
    let errors = text(&output.stderr);
    if output.status.code() == Some(125) {
        let required = std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_some_and(|v| v == "1");
        assert!(!required, "no guest can be booted here: {errors}");
        eprintln!("NOT RUN: no guest can be booted here: {errors}");
        return;
    }
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said} {errors}");
    assert!(said.contains("isolated cpus 2,3 on request"), "{said}");
    assert!(said.contains("[Rank 0] Binding to NUMA domain 0"), "the latency of cpu 2: {said}");
    let left_out =
        "--numa=auto leaves out nodes 1, as their cpus are isolated: --numa=1 names them";
    assert!(said.contains(left_out), "{said}");
    assert!(said.contains("--cpus node: cpus 2,3 of node 1 are isolated"), "{said}");
}

#[test]
fn only_linux_takes_appended_parameters() {
    let append = ["guest", "run", "--dry-run", "--append", "numa=fake=2", "--append", "nosmt"];
    let output = numalab(&[&append[..], &["--accel", "tcg"]].concat());
    let words = text(&output.stdout);
    assert!(words.contains("numa=fake=2 nosmt'"), "{words} {}", text(&output.stderr));
    let output = numalab(&[&append[..], &["--kernel", "numalab"]].concat());
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{errors}");
    assert!(errors.contains("--append: expected a Linux guest"), "{errors}");
}
