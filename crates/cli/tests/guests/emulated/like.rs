//! A guest modelled on a known machine measures the figures of the machine's file.

use std::collections::BTreeMap;
use std::fs;

use super::lab::{Answer, Lab, assert_near, is_long_or_not_run};

const LOCAL_NS: f64 = 108.0;
const REMOTE_NS: f64 = 222.0;
const NODE_GB_S: f64 = 10.66;
const LINK_GB_S: f64 = 6.4;
/// Bytes that a core has in flight: eight lines of 64 bytes.
const CORE_BYTES: f64 = 512.0;
/// Rise of latency by share of the peak: the peaks in the file imply it.
const RISE: [(f64, f64); 6] = [
    (0.0, 1.0),
    (0.2737, 1.0582),
    (0.4269, 1.1092),
    (0.58, 1.201),
    (0.7231, 1.3214),
    (0.8128, 1.4306),
];

/// Returns the rise of latency as a fraction of the unloaded one, at this share of the peak.
fn rise(share: f64) -> f64 {
    let (below, above) = RISE
        .windows(2)
        .map(|pair| (pair[0], pair[1]))
        .find(|(_, above)| share <= above.0)
        .expect("a share below the last point");
    below.1 + (above.1 - below.1) * (share - below.0) / (above.0 - below.0) - 1.0
}

/// Returns the latency of node 0's memory to node 0 at this total demand.
fn local_ns(gb_s: f64) -> f64 {
    LOCAL_NS * (1.0 + rise(gb_s / NODE_GB_S))
}

fn remote_ns(gb_s: f64) -> f64 {
    REMOTE_NS * (1.0 + rise(gb_s / LINK_GB_S)) + local_ns(gb_s) - LOCAL_NS
}

const SCRIPT: &str = "echo always > /sys/kernel/mm/transparent_hugepage/enabled
echo '== latency'
numalab latency --size 32M --per node --nodes 0,1 --pages thp --budget 2s --seed 1 -q --format csv
echo '== near'
numalab bandwidth --kernel read --size 16M --pages thp --cpus 0 --nodes 0 --budget 1s --seed 1 -q --format csv
echo '== far'
numalab bandwidth --kernel read --size 16M --pages thp --cpus 2 --nodes 0 --budget 1s --seed 1 -q --format csv
echo '== loaded'
numalab loaded --size 16M --pages thp --cpus 0-3 --nodes 0 --budget 3s --seed 1 -q --format csv";

#[test]
fn a_guest_like_the_x460_finds_the_figures_of_its_file() {
    let lab = Lab::open();
    let like = ["--emulate-like", "x460", "--cpus", "8", "--memory", "1280M"];
    let Some(answer) = lab.guest(&like, SCRIPT) else { return };
    let medians = answer.medians("latency");
    assert!(medians.len() >= 4, "{medians:?}");
    for ((cpu, node), median) in medians {
        let charged = if cpu / 2 == node { LOCAL_NS } else { REMOTE_NS };
        assert_near(median, charged, 0.05, &format!("cpu {cpu} to node {node}"));
    }
    for (part, ns) in [("near", local_ns as fn(f64) -> f64), ("far", remote_ns)] {
        let gb_s = answer.last_median(part);
        assert_near(gb_s, CORE_BYTES / ns(gb_s), 0.05, part);
    }
    let surface = points(&answer);
    assert!(surface.len() >= 4, "{surface:?}");
    assert!(surface.iter().any(|(gb_s, _)| *gb_s > 0.5 * NODE_GB_S), "{surface:?}");
    for (gb_s, ns) in surface {
        // The chase itself moves a line per load.
        let charged = local_ns(gb_s + 64.0 / ns);
        assert_near(ns, charged, 0.10, &format!("a load under {gb_s} GB/s"));
    }
}

/// Returns bandwidth and latency for each rate of the streams.
fn points(answer: &Answer) -> Vec<(f64, f64)> {
    let mut by_cell: BTreeMap<String, (Option<f64>, Option<f64>)> = BTreeMap::new();
    for row in answer.rows("loaded") {
        let point = by_cell.entry(row["cell"].to_owned()).or_default();
        let median: Option<f64> = row["median"].parse().ok();
        match row["metric"] {
            "latency" => point.1 = median,
            _ => point.0 = median,
        }
    }
    by_cell.into_values().filter_map(|(gb_s, ns)| Some((gb_s?, ns?))).collect()
}

/// Two nodes of 100 and 250 ns, without caches.
const TWO_NODES: &str = "access = [
  { initiator = 0, target = 0, read_latency_ps = 100000 },
  { initiator = 0, target = 1, read_latency_ps = 250000 },
  { initiator = 1, target = 0, read_latency_ps = 250000 },
  { initiator = 1, target = 1, read_latency_ps = 100000 },
]
[[node]]
id = 0
cpus = \"0\"
memory = \"384M\"
[[node]]
id = 1
cpus = \"1\"
memory = \"256M\"
";

/// A TLB of 16 pages of 4 KiB, and page tables on node 1.
const TLB: &str = "[memory.tlb]
upper_entries = 64
walkers = 1
tables_node = 1
parts = [
  { level = 1, page_bytes = [4096], entries = 16, ways = 16 },
  { level = 1, page_bytes = [2097152], entries = 64, ways = 64 },
]
";

#[test]
fn a_page_walk_costs_the_distance_to_the_node_of_its_tables() {
    if !is_long_or_not_run("page walks in a guest") {
        return;
    }
    let lab = Lab::open();
    let file = lab.path("machine.toml");
    fs::write(&file, format!("{TWO_NODES}{TLB}")).expect("written");
    let script = "echo '== random'
numalab latency --size 8M --pages 4k --pattern random --cpus 0 --nodes 0 --seed 1 -q --format csv";
    let like = ["--emulate-like", file.to_str().expect("UTF-8")];
    let Some(answer) = lab.guest(&like, script) else { return };
    // Of 2,048 pages in random order, 16 are in the TLB; the others' entries come from node 1.
    let walk_ns = 250.0 * (1.0 - 16.0 / 2048.0);
    assert_near(answer.last_median("random"), 100.0 + walk_ns, 0.05, "a load and its walk");
}
