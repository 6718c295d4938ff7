//! An aarch64 guest: one boot, looked at by many tests.
//!
//! It needs QEMU for aarch64 (fetched from Debian's backports into the cache where the system has
//! none), Debian's arm64 kernel, and numalab built for aarch64. With `NUMALAB_REQUIRE_TOOLS=1` their
//! lack is a failure; otherwise it is printed.
#![forbid(unsafe_code)]

mod schemas;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use numalab_topology::{Machine, NodeId};
use serde_json::Value;
use tempfile::TempDir;

const TARGET: &str = "aarch64-unknown-linux-gnu";
const MACHINE: [&str; 8] =
    ["--arch", "aarch64", "--emulate", "512M,256M", "--cpus", "4", "--distances", "10,21;21,10"];
/// What the guest finds out about itself, and its exit code.
const LOOK: &str = "set -e
echo up
mkdir out
uname -rm > out/kernel.txt
numalab topology --source sysfs --format json > out/topology.json
numalab selftest --real-nodes --size 4M --time 100ms -q --format json > out/selftest.json || true
numactl --hardware > out/numactl.txt
ls /dev/ram0 > out/modules.txt
echo to errors >&2
exit 7";

/// What the guest brought back, and what numalab said of it.
struct Booted {
    directory: TempDir,
    listed: String,
    errors: String,
}

impl Booted {
    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.directory.path().join("results/root/out").join(name)).expect(name)
    }
}

/// The program for aarch64, as `scripts/test` builds it too, without what a small guest has no
/// room for.
fn own_program(directory: &Path) -> PathBuf {
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
    let program = directory.join("numalab-aarch64");
    let mut strip = Command::new("aarch64-linux-gnu-strip");
    strip.args(["--strip-debug", "-o"]).arg(&program);
    let stripped = strip.arg(target.join(TARGET).join("debug/numalab")).status();
    assert!(stripped.expect("strip starts").success());
    program
}

fn numalab(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_numalab"));
    command.args(arguments).stdin(Stdio::null());
    command.env("XDG_RUNTIME_DIR", directory.join("run"));
    command.env("NUMALAB_AARCH64", directory.join("numalab-aarch64"));
    command
}

fn run(directory: &Path, arguments: &[&str]) -> Output {
    numalab(directory, arguments).output().expect("numalab starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Boots, and asks which guests run while this one does.
fn boot() -> Option<Booted> {
    let directory = tempfile::Builder::new().prefix("nl").tempdir_in("/tmp").expect("made");
    let here = directory.path();
    own_program(here);
    if stderr(&run(here, &["guest", "run", "--arch", "aarch64", "--dry-run"]))
        .contains("--fetch-qemu")
    {
        run(here, &["guest", "image", "--fetch-qemu", "--arch", "aarch64"]);
    }
    let results = here.join("results");
    let results = results.to_str().expect("UTF-8");
    let rest = ["--with", "numactl", "--module", "brd", "--collect", "out", "-o", results];
    let words = [&["guest", "run"], &MACHINE[..], &rest, &["--", "sh", "-c", LOOK]].concat();
    let mut running = numalab(here, &words);
    let mut running =
        running.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    let mut line = String::new();
    BufReader::new(running.stdout.take().expect("piped")).read_line(&mut line).expect("readable");
    let listed = stdout(&run(here, &["guest", "list"]));
    let output = running.wait_with_output().expect("it ends");
    let errors = stderr(&output);
    if output.status.code() == Some(125) {
        let required = std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_some_and(|v| v == "1");
        assert!(!required, "no aarch64 guest can be booted here: {errors}");
        eprintln!("NOT RUN: no aarch64 guest can be booted here: {errors}");
        return None;
    }
    assert_eq!((output.status.code(), line.as_str()), (Some(7), "up\n"), "{errors}");
    Some(Booted { directory, listed, errors })
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
    assert!(booted.errors.ends_with("to errors\n"), "{}", booted.errors);
    assert!(booted.listed.contains("2 nodes, 4 cpus, 768 MiB: sh -c"), "{}", booted.listed);
    let found = schemas::document(&booted.read("topology.json"));
    let machine: Machine = serde_json::from_value(found["machine"].clone()).expect("a machine");
    let cpus: Vec<String> = machine.nodes.iter().map(|node| node.cpus.to_string()).collect();
    assert_eq!(cpus, ["0,1", "2,3"]);
    assert_eq!(found["machine"]["distances"], serde_json::json!([[10, 21], [21, 10]]));
    for (node, mib) in [(0, 512_u64), (1, 256)] {
        let bytes = machine.node(NodeId(node)).expect("a node").memory_bytes;
        // The kernel itself takes a part of it.
        assert!(bytes <= mib << 20 && bytes > (mib - 48) << 20, "node {node}: {bytes}");
    }
}

#[test]
fn a_program_of_an_arm64_package_sees_both_nodes_and_a_module_of_its_kernel_is_loaded() {
    let Some(booted) = booted() else { return };
    let text = booted.read("numactl.txt");
    assert!(text.contains("available: 2 nodes (0-1)"), "{text}");
    assert!(text.contains("node 1 cpus: 2 3"), "{text}");
    assert_eq!(booted.read("modules.txt"), "/dev/ram0\n");
}

#[test]
fn pins_placement_proof_and_huge_pages_hold_on_each_node_of_an_aarch64_guest() {
    let Some(booted) = booted() else { return };
    let found = schemas::document(&booted.read("selftest.json"));
    assert_eq!(found["environment"]["cpu_model"], "Neoverse-N1", "{found}");
    let checks = found["checks"].as_array().expect("checks");
    for name in ["pins", "bound", "first-touch", "proof", "reserved-huge-pages", "settings"] {
        let checked = checks.iter().find(|checked| checked["check"] == name).expect(name);
        assert_eq!(checked["outcome"], Value::from("passed"), "{checked}");
    }
}

#[test]
fn what_an_aarch64_guest_does_not_have_is_refused_before_the_boot() {
    let directory = tempfile::tempdir().expect("made");
    fs::write(directory.path().join("numalab-aarch64"), "").expect("written");
    let this = env!("CARGO_BIN_EXE_numalab");
    for (arguments, words) in [
        (&["--kernel", "numalab"][..], "expected a Linux guest"),
        (&["--kernel", this, "--raw"], "expected a Linux guest, without --raw"),
        (&["--emulate", "512M,0"], "no nodes without memory"),
        (&["--emulate-tiers", "512M@100ns,512M@300ns"], "no latencies of the firmware"),
        (&["--accel", "kvm"], "no KVM"),
        (&["--emulate", "2", "--emulate-latency", "100"], "no memory emulator"),
        (&["--with", this], "a program for x86_64, expected one for aarch64"),
    ] {
        let dry = ["guest", "run", "--arch", "aarch64", "--dry-run"];
        let output = run(directory.path(), &[&dry, arguments, &["--", "true"]].concat());
        let errors = stderr(&output);
        assert_eq!(output.status.code(), Some(125), "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
    }
    for (arguments, code, words) in [
        (&["run", "--arch", "riscv64"][..], 125, "expected x86_64 or aarch64"),
        (&["image", "--arch", "aarch64", "--iso", "x.iso"], 2, "own kernel is for x86_64 alone"),
    ] {
        let output = run(directory.path(), &[&["guest"], arguments].concat());
        let errors = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
    }
}

#[test]
fn what_is_for_the_other_processor_is_refused_and_a_lacking_numalab_says_what_builds_it() {
    let Some(booted) = booted() else { return };
    let here = booted.directory.path();
    let own = here.join("numalab-aarch64");
    let own = own.to_str().expect("UTF-8");
    for (arguments, words) in [
        (&["--", own][..], "a program for aarch64, expected one for x86_64"),
        (&["--kernel", own, "--", "true"], "a kernel for aarch64, expected one for x86_64"),
    ] {
        let output = run(here, &[&["guest", "run"], arguments].concat());
        assert_eq!(output.status.code(), Some(125), "{arguments:?}");
        assert!(stderr(&output).contains(words), "{arguments:?}: {}", stderr(&output));
    }
    for (program, words) in [
        (env!("CARGO_BIN_EXE_numalab"), "a program for x86_64, expected one for aarch64"),
        ("/no/such", "build it with `make aarch64` in numalab's source"),
    ] {
        let mut command = numalab(here, &["guest", "run", "--arch", "aarch64", "--", "true"]);
        let output = command.env("NUMALAB_AARCH64", program).output().expect("numalab starts");
        assert_eq!(output.status.code(), Some(125), "{program}");
        assert!(stderr(&output).contains(words), "{program}: {}", stderr(&output));
    }
}
