//! A guest with a CXL device, booted once: Linux finds it, brings its memory online as a node,
//! and moves pages between it and the machine's own.

use std::sync::LazyLock;

use super::lab::{Answer, Lab, assert_near, rounds};
use super::tiers::probed;

const FAST_NS: f64 = 100.0;
const CXL_NS: f64 = 300.0;
const TIERS: &str = "512M@100ns,256M@300ns";

const ARGUMENTS: [&str; 9] = [
    "--kernel",
    "backports",
    "--cpus",
    "1",
    "--emulate-cache",
    "32K,256K@4",
    "--emulate-tiers",
    TIERS,
    "--cxl",
];

const SCRIPT: &str = "
echo 0 > /proc/sys/kernel/numa_balancing
echo '== topology'
numalab topology --format json
echo '== shown'
numalab topology
echo '== regions'
ls /sys/bus/cxl/drivers/cxl_region | grep region
echo '== cxl'
numalab bind --numa=1 -- CHASE 0 0 1 4k 1 10
echo '== balancing 2'
numalab knobs run numa_balancing=2 -- \\
    numalab study probe tiering --size 2M --hot 512K --time 4s --format json
";

/// Returns the guest, booted by the first test that needs it.
fn booted() -> Option<&'static Answer> {
    static BOOTED: LazyLock<Option<Answer>> =
        LazyLock::new(|| Lab::open().guest(&ARGUMENTS, SCRIPT));
    BOOTED.as_ref()
}

#[test]
fn linux_makes_a_node_of_the_cxl_device_and_a_tier_of_the_node() {
    let Some(answer) = booted() else { return };
    let document = answer.part("topology").join("\n");
    let document: serde_json::Value = serde_json::from_str(&document).expect("JSON");
    let found: numalab_topology::Machine =
        serde_json::from_value(document["machine"].clone()).expect("a machine");
    let asked = numalab_formats::tiers::parse(TIERS).expect("tiers").cxl_machine(1);
    let asked = asked.expect("a machine");
    let cxl = |machine: &numalab_topology::Machine| -> Vec<_> {
        machine.nodes.iter().map(|node| (node.id, node.cxl, node.cpus.clone())).collect()
    };
    assert_eq!(cxl(&found), cxl(&asked));
    assert_eq!(found.nodes[1].memory_bytes, asked.nodes[1].memory_bytes);
    assert_eq!((&found.tiers, &found.distances), (&asked.tiers, &asked.distances));
    assert_eq!(answer.part("regions"), ["region0"]);
    let shown = answer.part("shown");
    assert!(shown.iter().any(|line| line.contains("256M CXL")), "{shown:?}");
}

#[test]
fn cxl_memory_has_the_requested_cost_and_hot_pages_leave_it() {
    let Some(answer) = booted() else { return };
    let (pages, ns) = &rounds(&answer.part("cxl"))[0];
    assert_eq!(pages.keys().copied().collect::<Vec<_>>(), [1]);
    assert_near(*ns, CXL_NS, 0.02, "the CXL device");
    let moves = probed(answer, "balancing 2");
    assert!(moves("promoted") >= 128.0, "{} pages promoted", moves("promoted"));
    assert!(moves("hot-fast") >= 90.0, "{} % of the hot pages", moves("hot-fast"));
    assert!(moves("latency-end") < (FAST_NS + CXL_NS) / 2.0, "{} ns", moves("latency-end"));
}
