//! A guest for aarch64 that boots through UEFI firmware, with memory costs from its HMAT.

use std::fs;
use std::sync::LazyLock;

use serde_json::Value;

use super::lab::{Lab, build, numalab, stderr, stdout, was_booted};
use crate::schemas;

/// Measures from a cpu of each node to each node, in separate phases; then runs numalab's checks
/// for machines of several nodes.
const LOOK: &str = "set -e
mkdir out
numalab topology --source sysfs --format json > out/topology.json
numalab mark --phase matrix -- \\
    numalab latency --size 256K --per node --pages 4k --precision 5% -q --format json > out/run.json
numalab machine selftest --real-nodes --size 256K --time 3s -q --format json > out/selftest.json";
/// Latencies that a device tree cannot express.
const MACHINE: &str = r#"
distances = [[10, 21], [21, 10]]
access = [
  { initiator = 0, target = 0, read_latency_ps = 100000 },
  { initiator = 0, target = 1, read_latency_ps = 210000 },
  { initiator = 1, target = 0, read_latency_ps = 210000 },
  { initiator = 1, target = 1, read_latency_ps = 100000 },
]
packages = { 0 = "0,1", 1 = "2,3" }

[[node]]
id = 0
cpus = "0,1"
memory = "512M"

[[node]]
id = 1
cpus = "2,3"
memory = "256M"
"#;
/// The same caches as in other guests: they keep a program's stack out of memory.
const COSTS: [&str; 4] = ["--emulate-latency", "hmat", "--emulate-cache", "32K"];
/// Loads of a window in such a guest.
const WINDOW: u64 = 4000;

/// The guest's findings and the emulator's report.
struct Found {
    topology: Value,
    run: Value,
    self_test: Value,
    report: Value,
}

fn look() -> Option<Found> {
    let target = build(&["--release", "-p", "numalab-emulator"], &[]);
    let lab = Lab::open();
    let path = |name: &str| lab.path().join(name).to_str().expect("UTF-8").to_owned();
    let (file, results, machine) = (path("report.json"), path("results"), path("machine.toml"));
    fs::write(&machine, MACHINE).expect("written");
    let rest = ["--emulate-report", &file, "--collect", "out", "-o", &results, "--", "sh", "-c"];
    let machine = ["guest", "run", "--arch", "aarch64", "--topology", &machine];
    let words = [&machine[..], &COSTS, &["--emulate-stages", "core"], &rest, &[LOOK]].concat();
    let mut command = numalab(lab.path(), &words);
    command.env("NUMALAB_EMULATOR", target.join("release/libnumalab_emulator.so"));
    let output = command.output().expect("numalab starts");
    if !was_booted(&output) {
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let read = |name: &str| fs::read(path(name)).expect("brought back");
    Some(Found {
        topology: schemas::document(&read("results/root/out/topology.json")),
        run: schemas::document(&read("results/root/out/run.json")),
        self_test: schemas::document(&read("results/root/out/selftest.json")),
        report: serde_json::from_slice(&read("report.json")).expect("JSON"),
    })
}

fn found() -> Option<&'static Found> {
    static FOUND: LazyLock<Option<Found>> = LazyLock::new(look);
    FOUND.as_ref()
}

#[test]
fn facts_missing_from_a_device_tree_reach_an_aarch64_guest_through_its_firmware() {
    let Some(Found { topology, .. }) = found() else { return };
    let access = topology["machine"]["access"].as_array().expect("accesses");
    let from_0 = access.iter().find(|access| access["initiator"] == 0 && access["target"] == 0);
    let from_0 = from_0.expect("of node 0");
    assert_eq!(from_0["read_latency_ps"], 100_000, "{from_0}");
    assert_eq!(topology["machine"]["distances"], serde_json::json!([[10, 21], [21, 10]]));
}

#[test]
fn latencies_in_an_aarch64_guest_are_those_charged_and_are_counted_by_phase() {
    let Some(Found { run, report, .. }) = found() else { return };
    let failed = |check: &&Value| check["passed"] != true;
    let checks = report["self_test"].as_array().expect("checks");
    assert_eq!(checks.iter().find(failed), None);
    let phases = report["phases"].as_array().expect("phases");
    let phase = phases.iter().find(|phase| phase["name"] == "matrix").expect("a phase");
    for (cpu, node, charged_ns) in [(0, 0, 100.0), (0, 1, 210.0), (2, 0, 210.0), (2, 1, 100.0)] {
        let found_ns = median_ns(run, cpu, node);
        let off = found_ns / charged_ns - 1.0_f64;
        assert!(off.abs() < 0.02, "cpu {cpu}, node {node}: {found_ns} ns, charged {charged_ns}");
        let misses = phase["vcpus"][cpu]["nodes"][node]["load_misses"].as_u64();
        assert!(misses > Some(20 * WINDOW), "cpu {cpu}, node {node}: {misses:?} load misses");
    }
}

/// This includes balancing: the pages of a migrated thread follow it, and its loads become local.
#[test]
fn the_checks_for_several_nodes_pass_in_an_aarch64_guest() {
    let Some(Found { self_test, .. }) = found() else { return };
    assert_eq!(self_test["environment"]["cpu_model"], "Neoverse-N1", "{self_test}");
    let checks = self_test["checks"].as_array().expect("checks");
    let checked = |name: &str| {
        let checked = checks.iter().find(|checked| checked["check"] == name).expect(name);
        assert_eq!(checked["outcome"], "passed", "{checked}");
        &checked["found"]
    };
    for name in ["pins", "bound", "first-touch", "proof", "matrix", "settings"] {
        checked(name);
    }
    for name in ["transparent-huge-pages", "reserved-huge-pages"] {
        checked(name);
    }
    let balancing = checked("balancing");
    let figure = |name: &str| balancing[name].as_f64().expect("a figure");
    // Pages may have moved before the first window on a busy host, but not without balancing. Most
    // of the memory is local in the end: below the middle of 100 and 210 ns.
    assert_eq!(figure("off_percent"), 0.0, "{balancing}");
    assert!(figure("on_percent") > 50.0 && figure("end_ns") < 155.0, "{balancing}");
}

/// Returns the median of the windows from this cpu to this node.
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
