//! A guest for aarch64 whose memory costs what its distances say.

use std::fs;

use serde_json::Value;

use crate::lab::{Lab, MACHINE, build, numalab, stderr, stdout, was_booted};
use crate::schemas;

/// From a cpu of each node, to each node.
const LOOK: &str = "numalab mark --phase matrix -- \
    numalab latency --size 256K --per node --pages 4k --precision 5% -q --format json";
/// As the caches are for other processors' guests: what a program keeps on its stack stays there.
const COSTS: [&str; 4] = ["--emulate-latency", "100", "--emulate-cache", "32K"];
/// Loads of a window in such a guest.
const WINDOW: u64 = 4000;

#[test]
fn latencies_in_an_aarch64_guest_are_what_the_emulator_charges_and_it_counts_them_by_phase() {
    let target = build(&["--release", "-p", "numalab-emulator"], &[]);
    let lab = Lab::open();
    let file = lab.path().join("report.json");
    let report = ["--emulate-report", file.to_str().expect("UTF-8")];
    let words =
        [&["guest", "run"], &MACHINE[..], &COSTS, &report, &["--", "sh", "-c", LOOK]].concat();
    let mut command = numalab(lab.path(), &words);
    command.env("NUMALAB_EMULATOR", target.join("release/libnumalab_emulator.so"));
    let output = command.output().expect("numalab starts");
    if !was_booted(&output) {
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let record = schemas::document(&stdout(&output));
    let report: Value = serde_json::from_slice(&fs::read(&file).expect("a report")).expect("JSON");
    let failed = |check: &&Value| check["passed"] != true;
    let checks = report["self_test"].as_array().expect("checks");
    assert_eq!(checks.iter().find(failed), None);
    let phases = report["phases"].as_array().expect("phases");
    let phase = phases.iter().find(|phase| phase["name"] == "matrix").expect("a phase");
    for (cpu, node, charged_ns) in [(0, 0, 100.0), (0, 1, 210.0), (2, 0, 210.0), (2, 1, 100.0)] {
        let found_ns = median_ns(&record, cpu, node);
        let off = found_ns / charged_ns - 1.0_f64;
        assert!(off.abs() < 0.02, "cpu {cpu}, node {node}: {found_ns} ns, charged {charged_ns}");
        let misses = phase["vcpus"][cpu]["nodes"][node]["load_misses"].as_u64();
        assert!(misses > Some(20 * WINDOW), "cpu {cpu}, node {node}: {misses:?} load misses");
    }
}

/// The median of the windows from this cpu to this node.
fn median_ns(record: &Value, cpu: usize, node: usize) -> f64 {
    let id = format!("latency/random/4k/cpu{cpu}/node{node}/256K");
    let cells = record["cells"].as_array().expect("cells");
    let cell = cells.iter().find(|cell| cell["id"] == id).expect(&id);
    assert_eq!(cell["placements"][0]["memory_node"], node, "{id}");
    let samples = cell["samples"].as_array().expect("samples").iter();
    let mut windows: Vec<f64> = samples.filter_map(|sample| sample["value"].as_f64()).collect();
    windows.sort_by(f64::total_cmp);
    windows[windows.len() / 2]
}
