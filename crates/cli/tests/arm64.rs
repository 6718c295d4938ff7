//! An aarch64 guest: one boot, looked at by many tests.
//!
//! It needs QEMU 10 for aarch64 (fetched from Debian's backports into the cache where the
//! distribution's is older), Debian's arm64 kernel, and numalab built for aarch64. With
//! `NUMALAB_REQUIRE_TOOLS=1` their lack is a failure; otherwise it is printed.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use numalab_topology::{Machine, NodeId};
use serde_json::Value;
use tempfile::TempDir;

mod schemas;

const TARGET: &str = "aarch64-unknown-linux-gnu";
const MACHINE: [&str; 8] =
    ["--arch", "aarch64", "--emulate", "512M,256M", "--cpus", "4", "--distances", "10,21;21,10"];
/// What the guest finds out about itself, and its exit code.
const LOOK: &str = "set -e
mkdir out
uname -rm > out/kernel.txt
numalab topology --source sysfs --format json > out/topology.json
numalab selftest --real-nodes --size 4M --time 100ms -q --format json > out/selftest.json || true
numactl --hardware > out/numactl.txt
exit 7";

/// What the guest brought back, and what numalab said of it.
struct Booted {
    directory: TempDir,
    errors: String,
}

impl Booted {
    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.directory.path().join("results/root/out").join(name)).expect(name)
    }
}

/// The program for aarch64, as `scripts/test` builds it too.
fn own_program() -> PathBuf {
    let debug = Path::new(env!("CARGO_BIN_EXE_numalab")).parent().expect("a directory");
    let target = debug.parent().expect("the target directory");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "-q", "-p", "numalab", "--target", TARGET, "--manifest-path"]);
    cargo.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"));
    cargo.env("CARGO_TARGET_DIR", target);
    cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc");
    cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS", "-C target-feature=+crt-static");
    let built = cargo.status().expect("cargo starts");
    assert!(built.success(), "cargo build --target {TARGET}: {built}");
    target.join(TARGET).join("debug/numalab")
}

fn numalab(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_numalab"));
    command.args(arguments).stdin(Stdio::null());
    command.env("XDG_RUNTIME_DIR", directory.join("run"));
    if let Some(program) = OWN_PROGRAM.get() {
        command.env("NUMALAB_AARCH64", program);
    }
    command.output().expect("numalab starts")
}

static OWN_PROGRAM: OnceLock<PathBuf> = OnceLock::new();

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn boot() -> Option<Booted> {
    OWN_PROGRAM.get_or_init(own_program);
    let directory = tempfile::Builder::new().prefix("nl").tempdir_in("/tmp").expect("made");
    let results = directory.path().join("results");
    let results = results.to_str().expect("UTF-8");
    let rest = ["--with", "numactl", "--collect", "out", "-o", results, "--", "sh", "-c", LOOK];
    let words = [&["guest", "run"], &MACHINE[..], &rest].concat();
    let mut output = numalab(directory.path(), &words);
    if stderr(&output).contains("--fetch-qemu") {
        numalab(directory.path(), &["guest", "image", "--fetch-qemu", "--arch", "aarch64"]);
        output = numalab(directory.path(), &words);
    }
    let errors = stderr(&output);
    if output.status.code() == Some(125) {
        let required = std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_some_and(|v| v == "1");
        assert!(!required, "no aarch64 guest can be booted here: {errors}");
        eprintln!("NOT RUN: no aarch64 guest can be booted here: {errors}");
        return None;
    }
    assert_eq!(output.status.code(), Some(7), "{errors}");
    Some(Booted { directory, errors })
}

fn booted() -> Option<&'static Booted> {
    static BOOTED: OnceLock<Option<Booted>> = OnceLock::new();
    BOOTED.get_or_init(boot).as_ref()
}

#[test]
fn nodes_cpus_memory_and_distances_of_an_aarch64_guest_are_those_asked_for() {
    let Some(booted) = booted() else { return };
    assert!(booted.read("kernel.txt").ends_with("-arm64 aarch64\n"), "{}", booted.errors);
    assert!(booted.errors.contains("another than this machine's"), "{}", booted.errors);
    let found = schemas::document(&booted.read("topology.json"));
    let machine: Machine = serde_json::from_value(found["machine"].clone()).expect("a machine");
    let cpus: Vec<String> = machine.nodes.iter().map(|node| node.cpus.to_string()).collect();
    assert_eq!(cpus, ["0,1", "2,3"]);
    assert_eq!(machine.distances.values(), [10, 21, 21, 10]);
    for (node, mib) in [(0, 512_u64), (1, 256)] {
        let bytes = machine.node(NodeId(node)).expect("a node").memory_bytes;
        // The kernel itself takes a part of it.
        assert!(bytes <= mib << 20 && bytes > (mib - 48) << 20, "node {node}: {bytes}");
    }
}

#[test]
fn a_program_of_an_arm64_package_runs_and_sees_both_nodes() {
    let Some(booted) = booted() else { return };
    let text = booted.read("numactl.txt");
    assert!(text.contains("available: 2 nodes (0-1)"), "{text}");
    assert!(text.contains("node 1 cpus: 2 3"), "{text}");
}

#[test]
fn pins_placement_proof_and_huge_pages_hold_on_each_node_of_an_aarch64_guest() {
    let Some(booted) = booted() else { return };
    let found = schemas::document(&booted.read("selftest.json"));
    let checks = found["checks"].as_array().expect("checks");
    let outcome = |name: &str| {
        let checked = checks.iter().find(|checked| checked["check"] == name).expect(name);
        (checked["outcome"].clone(), checked.clone())
    };
    for check in ["pins", "bound", "first-touch", "proof", "reserved-huge-pages", "settings"] {
        let (outcome, checked) = outcome(check);
        assert_eq!(outcome, Value::from("passed"), "{checked}");
    }
}

#[test]
fn what_an_aarch64_guest_does_not_have_is_refused_before_the_boot() {
    let directory = tempfile::tempdir().expect("made");
    for (arguments, words) in [
        (&["--emulate", "2", "--kernel", "numalab"][..], "expected a Linux guest"),
        (&["--emulate", "512M,0"], "no nodes without memory"),
        (&["--emulate-tiers", "512M@100ns,512M@300ns"], "latencies of the firmware"),
        (&["--kernel", "backports"], "expected linux or a file"),
        (&["--accel", "kvm"], "no KVM on this machine"),
        (&["--emulate", "2", "--emulate-latency", "100"], "no memory emulator"),
    ] {
        let dry = ["guest", "run", "--arch", "aarch64", "--dry-run"];
        let output = numalab(directory.path(), &[&dry, arguments, &["--", "true"]].concat());
        let errors = stderr(&output);
        assert_eq!(output.status.code(), Some(125), "{arguments:?}: {errors}");
        let no_qemu = errors.contains("qemu-system-aarch64");
        assert!(errors.contains(words) || no_qemu, "{arguments:?}: {errors}");
    }
    let output = numalab(directory.path(), &["guest", "run", "--arch", "riscv64", "--", "true"]);
    assert!(stderr(&output).contains("expected x86_64 or aarch64"), "{}", stderr(&output));
}
