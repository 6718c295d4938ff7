//! The OSTD kernel of `integrations/ostd`, booted by `numalab guest run --raw`.
//!
//! Building it takes a separate toolchain and minutes, so it is built only with `NUMALAB_LONG=1`;
//! an existing build is always used.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::kernel_lab::{Lab, text};

/// Returns the kernel, built now with `NUMALAB_LONG=1`; `None`, after printing why, if there is none.
fn kernel() -> Option<PathBuf> {
    let integration = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../integrations/ostd");
    let elf = integration.join("target/numalab-ostd.elf");
    if std::env::var_os("NUMALAB_LONG").is_some_and(|value| value == "1") {
        // Removes the toolchain and target that cargo has set for this test.
        let mut build = Command::new(integration.join("build"));
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_cargos(&name.to_string_lossy()))
        {
            build.env_remove(name);
        }
        let built = build.output().expect("a shell");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    }
    if !elf.exists() {
        eprintln!("NOT RUN: no OSTD kernel: integrations/ostd/build, or NUMALAB_LONG=1");
        return None;
    }
    Some(elf)
}

fn is_cargos(name: &str) -> bool {
    name.starts_with("RUSTUP_TOOLCHAIN") || (name.starts_with("CARGO") && name != "CARGO_HOME")
}

/// Returns the console of a boot that succeeded.
fn console(lab: &Lab, elf: &Path, machine: &[&str], words: &[&str]) -> String {
    let elf = elf.display().to_string();
    let raw = ["guest", "run", "--raw", "--accel", "tcg", "--quiet", "--timeout", "300s"];
    let ends = ["--expect", "^numalab-ostd: done", "--fail", "FAILED|panic", "--kernel", &elf];
    let output = lab.numalab(&[&raw[..], &ends, machine, &["--"], words].concat());
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{machine:?} {words:?}: {said}");
    text(&output, 0)
}

/// Returns the number that follows a string.
fn figure(console: &str, before: &str) -> f64 {
    let rest = console.split(before).nth(1).unwrap_or_else(|| panic!("{before}: {console}"));
    let number: String =
        rest.trim_start().chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    number.parse().unwrap_or_else(|_| panic!("{before}: {console}"))
}

#[test]
fn an_ostd_kernel_boots_on_any_machine_and_finds_its_nodes() {
    let (Some(lab), Some(elf)) = (Lab::open(), kernel()) else { return };
    let tests = ["work=tests"];
    let two = ["--emulate", "2", "--cpus", "2", "--memory", "4G", "--distances", "10,30;30,10"];
    let found = console(&lab, &elf, &two, &tests);
    assert!(found.contains("machine: 2 nodes, 2 cpus, "), "{found}");
    let nearest_first = "distances [30, 10], order [1, 0]";
    assert!(found.contains("tests: 2 passed") && found.contains(nearest_first), "{found}");
    let four = ["--emulate", "4", "--cpus", "8", "--memory", "4G"];
    assert!(console(&lab, &elf, &four, &tests).contains("machine: 4 nodes, 8 cpus, "));
    let without_memory = ["--emulate", "2G,2G,0", "--cpus", "3"];
    let found = console(&lab, &elf, &without_memory, &tests);
    assert!(found.contains("machine: 3 nodes, 3 cpus, "), "{found}");
    let flat = ["--cpus", "1", "--memory", "4G"];
    assert!(console(&lab, &elf, &flat, &tests).contains("machine: 1 nodes, 1 cpus, "));
}

#[test]
fn frames_of_an_ostd_kernel_are_on_the_requested_node_and_cost_the_charged_time() {
    let (Some(lab), Some(elf)) = (Lab::open(), kernel()) else { return };
    let machine = ["--emulate", "2", "--cpus", "2", "--memory", "4G", "--distances"];
    let machine = [&machine[..], &["10,20;20,10", "--emulate-latency", "100"]].concat();
    let seed = ["work=test_numa", "size=2M", "count=20000", "runs=1"];
    let [numa, blind, osdk] = ["alloc=numa", "alloc=blind", "alloc=osdk"].map(|word| {
        let found = console(&lab, &elf, &machine, &[&[word], &seed[..]].concat());
        (figure(&found, "frames local: "), figure(&found, "time elapsed: "))
    });
    assert!((numa.0 - 100.0).abs() < 1e-9, "{numa:?}");
    assert!(blind.0 < 60.0 && osdk.0 < 60.0, "{blind:?} {osdk:?}");
    assert!(numa.1 < 0.9 * blind.1, "{numa:?} {blind:?}");
}

#[test]
fn an_ostd_kernel_on_our_frames_gets_any_free_frame() {
    let (Some(lab), Some(elf)) = (Lab::open(), kernel()) else { return };
    let machine = ["--emulate", "1", "--cpus", "2", "--memory", "4G"];
    let refused = |word: &str| {
        let found = console(&lab, &elf, &machine, &[word, "work=refusal"]);
        figure(found.split("is refused").nth(1).expect("told"), "with ")
    };
    assert!(refused("alloc=numa") < 0.1);
    assert!(refused("alloc=osdk") > 10.0);
}

#[test]
fn the_cost_of_a_free_on_our_frames_does_not_grow_with_free_memory() {
    let (Some(lab), Some(elf)) = (Lab::open(), kernel()) else { return };
    let machine = ["--emulate", "1", "--cpus", "2", "--memory", "4G"];
    let each_ns = |word: &str| {
        let found = console(&lab, &elf, &machine, &[word, "work=scatter"]);
        [512, 8192].map(|free| figure(&found, &format!("scatter: {free} single frames free, ")))
    };
    let (ours, osdk) = (each_ns("alloc=numa"), each_ns("alloc=osdk"));
    // Sixteen times as many are free.
    assert!(osdk[1] > 4.0 * osdk[0], "{osdk:?}");
    assert!(ours[1] < 4.0 * ours[0] && osdk[1] > 10.0 * ours[1], "{ours:?} {osdk:?}");
}
