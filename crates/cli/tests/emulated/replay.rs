//! A machine file, a guest like it, and the machine file that `numalab machine capture` makes in
//! there: both say the same.

use numalab_formats::machine_toml::{MachineFile, read_file};
use numalab_topology::{Machine, NodeId};

use crate::lab::{Lab, assert_near};
use crate::surface::{FILE as GIVEN, Point, Surface};

/// Sizes that a sweep steps over: a cache ends within one of them.
const STEP: f64 = 2.0;

#[test]
fn a_machine_captured_in_a_guest_is_the_one_of_its_file() {
    if std::env::var_os("NUMALAB_LONG").is_none_or(|value| value != "1") {
        println!("NOT RUN: a machine captured in a guest, without NUMALAB_LONG=1");
        return;
    }
    let lab = Lab::open();
    let file = lab.path("machine.toml");
    std::fs::write(&file, GIVEN).expect("written");
    let script = "echo always > /sys/kernel/mm/transparent_hugepage/enabled
numalab machine capture --quick --pages thp --seed 1 --budget 90s -q";
    let like = ["--emulate-like", file.to_str().expect("UTF-8")];
    let Some(answer) = lab.guest(&like, script) else { return };
    println!("{}", answer.text);
    let given = read_file(GIVEN).expect("it is one");
    let found = read_file(&answer.text).expect("a machine file");
    latencies(&given, &found);
    caches(&given, &found);
    transfers(&given, &found);
    loads(&given, &found);
}

fn latency_ns(machine: &Machine, from: NodeId, to: NodeId) -> f64 {
    let pair = machine.access.iter().find(|of| (of.initiator, of.target) == (from, to));
    pair.and_then(|of| of.read_latency_ps).expect("a latency") as f64 / 1000.0
}

fn latencies(given: &MachineFile, found: &MachineFile) {
    let loads = &given.memory.load[0].curves[0].points;
    let nodes = [0, 1].map(NodeId);
    for (from, to) in nodes.iter().flat_map(|from| nodes.map(|to| (*from, to))) {
        let [given, found] = [given, found].map(|of| latency_ns(&of.machine, from, to));
        let charged = given + rise_ns(loads, chase_mb_s(found));
        assert_near(found, charged, 0.05, &format!("latency of node {from} to {to}"));
    }
}

/// What a chase itself asks of memory, a line each time: on a memory as narrow as this one it shows.
fn chase_mb_s(ns: f64) -> f64 {
    64_000.0 / ns
}

fn caches(given: &MachineFile, found: &MachineFile) {
    let [given_ns, found_ns] = [given, found].map(|of| &of.memory.cache_latency_ns);
    assert_eq!(found_ns.len(), given_ns.len(), "{found_ns:?}");
    for (level, (found, given)) in found_ns.iter().zip(given_ns).enumerate() {
        assert_near(*found, *given, 0.05, &format!("a hit in L{}", level + 1));
    }
    let size = |of: &MachineFile, level| {
        let cache = of.machine.caches.iter().find(|cache| cache.level == level);
        cache.and_then(|cache| cache.size_bytes).expect("a size") as f64
    };
    for level in [1, 2] {
        let off = size(found, level) / size(given, level);
        assert!((1.0 / STEP..=STEP).contains(&off), "L{level} is {off} times as large");
    }
}

fn transfers(given: &MachineFile, found: &MachineFile) {
    let of = |file: &MachineFile| {
        let transfers = file.memory.transfers.clone().expect("core to core");
        [transfers.group_ns, transfers.node_ns[0][1]]
    };
    for (found, given) in of(found).into_iter().zip(of(given)) {
        assert_near(found, given, 0.05, "a line from core to core");
    }
}

/// Every curve: its peak, and every point before that is on the file's surface.
fn loads(given: &MachineFile, found: &MachineFile) {
    let surface = Surface { curves: &given.memory.load[0].curves };
    // The one core of node 0 that does not chase cannot saturate the other memory.
    assert_eq!(found.memory.load.len(), 3, "both memories, and that of node 0 from node 1");
    for load in &found.memory.load {
        let [loads, stores] = &load.curves[..] else { panic!("of loads and stores: {load:?}") };
        let to = load.nodes.iter().next().expect("a node");
        let idle_ns = latency_ns(&given.machine, NodeId(0), to);
        for (curve, kernel) in [(loads, "read"), (stores, "write-nt")] {
            let point = |&(mb_s, ns): &(f64, f64)| Point::new(kernel, mb_s / 1000.0, ns);
            let points: Vec<Point> = curve.points.iter().map(point).collect();
            let judged = points.iter().filter(|point| point.is_on(&surface, idle_ns)).count();
            assert!(judged >= 5, "{curve:?}");
            let most = points.iter().map(|point| point.of_peak(&surface)).fold(0.0, f64::max);
            assert_near(most, 1.0, 0.05, &format!("the peak of {kernel} of {load:?}"));
        }
    }
}

/// How far latency rises on a curve.
fn rise_ns(points: &[(f64, f64)], mb_s: f64) -> f64 {
    let above = points.iter().position(|point| point.0 >= mb_s).unwrap_or(points.len() - 1).max(1);
    let [below, above] = [points[above - 1], points[above]];
    let part = ((mb_s - below.0) / (above.0 - below.0)).min(1.0);
    below.1 + part * (above.1 - below.1) - points[0].1
}
