//! Reports of the emulator, and errors where it cannot run.

use std::fs;

use serde_json::Value;

use super::guest::booted;
use super::lab::Lab;

#[test]
fn a_run_in_virtual_time_says_so() {
    let Some(booted) = booted() else { return };
    let text = booted.answer.part("says").join(" ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    assert!(text.contains("time is virtual"), "{text}");
    assert!(!text.contains("clock is not invariant"), "{text}");
}

#[test]
fn the_report_comes_back_and_is_shown_in_every_format() {
    let Some(booted) = booted() else { return };
    let report: Value = serde_json::from_str(&booted.report).expect("JSON");
    assert_eq!(report["schema"], "numalab-emulator/1");
    assert_eq!((&report["mode"], &report["machine"]["cpus"][7]), (&"virtual".into(), &3.into()));
    let lab = Lab::open();
    let file = lab.path("report.json");
    fs::write(&file, &booted.report).expect("written");
    let file = file.to_str().expect("UTF-8");
    for (format, words) in [
        ("text", "% of each cpu's accesses that reached memory"),
        ("md", "| cpu \\\\ node |"),
        ("html", "<table class=\"heat\""),
        ("md", "Phase walk: "),
        ("csv", "phase,cpu,cpu_node,memory_node,loads"),
        ("json", "numalab/emulation-1"),
    ] {
        let output = lab.numalab(&["report", file, "--format", format]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && text.contains(words), "{format}: {text}");
    }
}

#[test]
fn a_marked_program_is_a_separate_phase() {
    let Some(booted) = booted() else { return };
    let report: Value = serde_json::from_str(&booted.report).expect("JSON");
    let phases = report["phases"].as_array().expect("phases");
    let marked = phases.iter().find(|phase| phase["name"] == "walk").expect("the phase");
    let on_own_node = &marked["vcpus"][0]["nodes"][0]["load_misses"];
    // One round over the lines of 1 MiB, and 51 windows.
    let loads = (1 << 14) + 51 * 2_000;
    assert!(on_own_node.as_u64() >= Some(loads), "{on_own_node} of at least {loads}");
}

#[test]
fn a_module_that_the_kernel_lacks_is_refused() {
    let Some(_) = booted() else { return };
    let output = Lab::open().numalab(&["guest", "run", "--module", "no_such", "--", "true"]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(125), "{errors}");
    assert!(errors.contains("has no module \"no_such\""), "{errors}");
}

#[test]
fn machines_that_cannot_be_emulated_are_refused_before_anything_starts() {
    let lab = Lab::open();
    let refused = |arguments: &[&str], words: &str| {
        let all = [&["guest", "run", "--dry-run"], arguments].concat();
        let output = lab.numalab(&all);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(125), "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
    };
    refused(&["--emulate-latency", "fast"], "expected nanoseconds of local memory");
    refused(&["--emulate-latency", "hmat", "--emulate-mode", "count"], "read latency");
    refused(&["--emulate-bandwidth", "1G,2G,3G", "--emulate-mode", "count"], "3 bandwidths");
    refused(&["--emulate-cache", "32K/7"], "with whole sets");
    refused(&["--emulate-report", "/no/such/directory/m.json"], "an existing directory");
    let many = ["--emulate", "2", "--cpus", "256", "--emulate-mode", "count"];
    refused(&many, "expected 1 to 255");
    let kvm = ["--emulate-mode", "count", "--accel", "kvm"];
    refused(&kvm, "expected the accelerator tcg");
}
