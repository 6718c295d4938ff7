//! Studies in guests for aarch64, and settings that such guests do not support.

use std::fs;

use super::lab::{Lab, build, numalab, run, stderr, stdout, was_booted};
use crate::schemas;

const STUDY: &str = r#"
name = "arm"
question = "Does balancing bring memory to a thread that moved away from it?"

[backend.linux-guest]
emulate = "2"
cpus = 2
memory = "512M"
distances = "10,21;21,10"
emulate-latency = "100"

[rules]
primary = "probe.latency-end"
warm-ups = 0
aa = false

[[factor]]
name = "numa_balancing"
levels = [0, 1]

[[workload]]
name = "probe"
tool = "balancing-probe"
arguments = ["--size", "256K", "--time", "3s"]
metrics = ["latency-end"]
"#;

/// One block shows that pages follow their thread; six, with `NUMALAB_LONG=1`, give a verdict.
#[test]
fn a_study_of_balancing_runs_in_an_aarch64_guest_and_finds_memory_near_with_it() {
    let target = build(&["--release", "-p", "numalab-emulator"], &[]);
    let lab = Lab::open();
    fs::write(lab.path().join("arm.toml"), STUDY).expect("written");
    let is_long = std::env::var_os("NUMALAB_LONG").is_some_and(|value| value == "1");
    let blocks = if is_long { "6" } else { "1" };
    let words = ["study", "run", "arm.toml", "--set", "arch=aarch64", "--blocks", blocks];
    let rest = ["--seed", "1", "--format", "json"];
    let mut command = numalab(lab.path(), &[&words[..], &rest].concat());
    command.env("NUMALAB_EMULATOR", target.join("release/libnumalab_emulator.so"));
    let output = command.current_dir(lab.path()).output().expect("numalab starts");
    if !was_booted(&output) {
        return;
    }
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("tcg: the memory emulator is a TCG plugin"), "{said}");
    let found = schemas::document(&output.stdout);
    if is_long {
        assert_eq!(found["effects"][0]["found"]["verdict"], "better", "{}", found["effects"]);
        return;
    }
    let result = fs::read_dir(lab.path().join("results")).expect("results").next();
    let result = result.expect("one").expect("readable").path();
    let rows = fs::read_to_string(result.join("samples.csv")).expect("samples");
    let end_ns = |treatment: &str| -> f64 {
        let row = rows.lines().find(|row| row.contains(treatment)).expect(treatment);
        row.split(',').nth(9).and_then(|value| value.parse().ok()).expect(row)
    };
    let (without, with) = (end_ns("numa_balancing=0"), end_ns("numa_balancing=1"));
    assert!(without > 200.0 && with < 155.0, "{without} ns, with balancing {with} ns");
}

#[test]
fn settings_of_studies_that_aarch64_guests_do_not_have_are_refused_by_name() {
    let directory = tempfile::tempdir().expect("made");
    let here = directory.path();
    let refused = |study: &str, settings: &[&str], words: &str| {
        let sets = settings.iter().flat_map(|setting| ["--set", setting]);
        let arguments: Vec<&str> = ["study", "run", study].into_iter().chain(sets).collect();
        let output = run(here, &arguments);
        let errors = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
    };
    let arm = "arch=aarch64";
    refused("numa-balancing-guest", &[arm, "accel=kvm"], "does not support KVM");
    refused("numa-balancing-guest", &["arch=riscv64"], "expected x86_64 or aarch64");
}

#[test]
fn a_study_says_which_numalab_its_aarch64_guests_lack_and_what_it_would_download() {
    let directory = tempfile::tempdir().expect("made");
    let (here, own) = (directory.path(), directory.path().join("numalab-aarch64"));
    let study = ["numa-balancing-guest", "--set", "arch=aarch64"];
    let mut without = numalab(here, &[&["study", "run"], &study[..]].concat());
    let output = without.env("NUMALAB_AARCH64", &own).output().expect("numalab starts");
    let errors = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{errors}");
    assert!(errors.contains("make aarch64"), "{errors}");
    fs::write(&own, "").expect("written");
    let mut plan = numalab(here, &[&["study", "run", "--dry-run"], &study[..]].concat());
    let output = plan.env("NUMALAB_CACHE", here.join("cache")).output().expect("numalab starts");
    let text = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(text.contains("a Linux aarch64 guest of 4 nodes"), "{text}");
    if !text.contains("It cannot be run now") {
        assert!(text.contains("package sysbench (arm64)"), "{text}");
    }
}
