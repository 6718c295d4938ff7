//! A machine file, a guest like it, and the file that `numalab machine capture` writes in the
//! guest: both must agree.

use numalab_formats::machine_toml::{MachineFile, read_file};
use numalab_formats::memory_emulator::Curve;
use numalab_topology::{CacheKind, Machine, NodeId};

use super::lab::{Lab, assert_near, is_long_or_not_run};
use super::surface::{FILE as GIVEN, Point, Surface};

/// Factor between the sizes of a sweep: a cache ends within one of them.
const STEP: f64 = 2.0;

/// Returns the script of a guest, with its time limit in virtual time.
fn script(budget: &str) -> String {
    format!(
        "echo always > /sys/kernel/mm/transparent_hugepage/enabled
numalab machine capture --quick --pages thp --seed 1 --budget {budget} -q"
    )
}

#[test]
fn a_machine_captured_in_a_guest_is_the_one_of_its_file() {
    if !is_long_or_not_run("a machine captured in a guest") {
        return;
    }
    let lab = Lab::open();
    let file = lab.path("machine.toml");
    std::fs::write(&file, GIVEN).expect("written");
    let like = ["--emulate-like", file.to_str().expect("UTF-8")];
    let Some(answer) = lab.guest(&like, &script("90s")) else { return };
    println!("{}", answer.text);
    let given = read_file(GIVEN).expect("it is one");
    let found = read_file(&answer.text).expect("a machine file");
    // The one core of node 0 that does not chase cannot saturate the other memory.
    assert_eq!(found.memory.load.len(), 3, "both memories, and that of node 0 from node 1");
    is_the_same(&given, &found, 0.05);
}

#[test]
fn this_machine_captured_is_the_one_that_a_guest_like_it_captures() {
    if !is_long_or_not_run("this machine, replayed") {
        return;
    }
    // Holds both turns, so that no other guest disturbs the measurement.
    let (lab, alone) = (Lab::open(), Lab::open());
    let captured = lab.numalab(&["machine", "capture", "--seed", "1"]);
    drop(alone);
    let errors = String::from_utf8_lossy(&captured.stderr);
    assert!(captured.status.success(), "{errors}");
    let text = String::from_utf8_lossy(&captured.stdout).into_owned();
    println!("{text}\n{errors}");
    let file = lab.path("here.toml");
    std::fs::write(&file, &text).expect("written");
    let given = read_file(&text).expect("a machine file");
    let homes = given.machine.nodes.iter().filter(|node| !node.cpus.is_empty()).count();
    let each = (given.machine.cpus.len() / homes).min(2);
    let (cpus, memory) = ((homes * each).to_string(), format!("{}G", 3 * homes));
    let file = file.to_str().expect("UTF-8");
    let like = ["--emulate-like", file, "--cpus", &cpus, "--memory", &memory];
    let Some(answer) = lab.guest(&like, &script("8s")) else { return };
    println!("{}", answer.text);
    // A core has as many outstanding lines for non-temporal stores as for loads, so alone it may
    // not reach the peak of these stores.
    is_the_same(&given, &read_file(&answer.text).expect("a machine file"), 0.25);
}

/// Compares all figures, within 5 % or a step of the sweep, except the peak of stores past the
/// caches.
fn is_the_same(given: &MachineFile, found: &MachineFile, stores: f64) {
    latencies(given, found);
    caches(given, found);
    transfers(given, found);
    loads(given, found, stores);
}

/// Returns the curves of a node's memory.
fn curves(file: &MachineFile, to: NodeId) -> &[Curve] {
    let mut loads = file.memory.load.iter();
    let load = loads.find(|load| load.from.is_none() && load.nodes.contains(to));
    load.map_or(&[], |load| &load.curves)
}

fn latency_ns(machine: &Machine, from: NodeId, to: NodeId) -> f64 {
    let pair = machine.access.iter().find(|of| (of.initiator, of.target) == (from, to));
    pair.and_then(|of| of.read_latency_ps).expect("a latency") as f64 / 1000.0
}

fn latencies(given: &MachineFile, found: &MachineFile) {
    for access in &given.machine.access {
        let (from, to) = (access.initiator, access.target);
        let [idle, found] = [given, found].map(|of| latency_ns(&of.machine, from, to));
        // The chase's own traffic, one line per latency, matters if bandwidth is low.
        let surface = Surface { curves: curves(given, to) };
        let rise_ns = surface.rise_to_peak_ns(64_000.0 / found).expect("one chase");
        assert_near(found, idle + rise_ns, 0.05, &format!("latency of node {from} to {to}"));
    }
}

fn caches(given: &MachineFile, found: &MachineFile) {
    let [given_ns, found_ns] = [given, found].map(|of| &of.memory.cache_latency_ns);
    assert_eq!(found_ns.len(), given_ns.len(), "{found_ns:?}");
    let size = |of: &MachineFile, level| {
        let mut caches = of.machine.caches.iter();
        let cache =
            caches.find(|of| usize::from(of.level) == level && of.kind != CacheKind::Instruction);
        cache.and_then(|cache| cache.size_bytes).expect("a size") as f64
    };
    for (level, (found_ns, given_ns)) in (1..).zip(found_ns.iter().zip(given_ns)) {
        assert_near(*found_ns, *given_ns, 0.05, &format!("a hit in L{level}"));
        let off = size(found, level) / size(given, level);
        assert!((1.0 / STEP..=STEP).contains(&off), "L{level} is {off} times as large");
    }
}

fn transfers(given: &MachineFile, found: &MachineFile) {
    let of = |file: &MachineFile| {
        let transfers = file.memory.transfers.clone().expect("core to core");
        [Some(transfers.group_ns), transfers.node_ns[0].last().copied()]
    };
    for (found, given) in of(found).into_iter().flatten().zip(of(given).into_iter().flatten()) {
        assert_near(found, given, 0.05, "a line from core to core");
    }
}

/// Checks every captured curve: its peak, and that every earlier point is on the file's surface.
/// The chase runs on node 0.
fn loads(given: &MachineFile, found: &MachineFile, stores_share: f64) {
    for load in &found.memory.load {
        let [loads, stores] = &load.curves[..] else { panic!("of loads and stores: {load:?}") };
        let to = load.nodes.iter().next().expect("a node");
        let surface = Surface { curves: curves(given, to) };
        if surface.curves.is_empty() {
            println!("No load on node {to} is in the file: nothing to compare with.");
            continue;
        }
        let idle_ns = latency_ns(&given.machine, NodeId(0), to);
        for (curve, kernel, share) in [(loads, "read", 0.05), (stores, "write-nt", stores_share)] {
            let point = |&(mb_s, ns): &(f64, f64)| Point::new(kernel, mb_s / 1000.0, ns);
            let points: Vec<Point> = curve.points.iter().map(point).collect();
            let judged = points.iter().filter(|point| point.is_on(&surface, idle_ns)).count();
            assert!(judged >= 5, "{curve:?}");
            let most = points.iter().map(|point| point.of_peak(&surface)).fold(0.0, f64::max);
            assert_near(most, 1.0, share, &format!("the peak of {kernel} of {load:?}"));
        }
    }
}
