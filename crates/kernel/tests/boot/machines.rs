//! Machines of every shape: the kernel's view of them, and the nodes of its frames.

use numalab_frames::Dump;
use numalab_kernel::event::{Guest, Run};
use numalab_kernel::results::Results;
use numalab_topology::{Machine, Node, NodeId, ProximityDomain};

use crate::need::has_memory;
use crate::qemu::{DONE, Qemu, arguments, machine};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// Parameters of a very short run.
const SMALL: &str = "size=4M count=2000 runs=2";

/// Returns the share of frames on their thread's own node.
fn local_share(runs: &[Run]) -> f64 {
    let (local, remote) = runs.iter().fold((0, 0), |sum, r| (sum.0 + r.local, sum.1 + r.remote));
    assert!(local + remote > 0);
    f64::from(u32::try_from(local).unwrap()) / f64::from(u32::try_from(local + remote).unwrap())
}

/// Checks that every cpu is running, and that nodes, distances and orders are those of the machine.
fn sees(results: &Results, machine: &Machine) {
    let boot = results.boot.as_ref().expect("it booted");
    assert_eq!((boot.cpus as usize, boot.started), (machine.cpus.len(), boot.cpus));
    assert_eq!(results.machine.nodes.len(), machine.nodes.len());
    assert!(results.machine.cpus.iter().all(|cpu| cpu.online));
    let places: Vec<usize> = machine.nodes.iter().map(|node| place(results, node.id.0)).collect();
    for (given, &seen) in machine.nodes.iter().zip(&places) {
        let seen = &results.machine.nodes[seen];
        assert_eq!(seen.cpus, given.cpus, "node {}", given.id);
        // The memory of the firmware, the kernel and its metadata is missing.
        assert!(seen.memory_bytes <= given.memory_bytes);
        assert!(seen.memory_bytes + 96 * MIB >= given.memory_bytes, "node {}", given.id);
    }
    let nodes = machine.nodes.len();
    for (from, to) in (0..nodes * nodes).map(|at| (at / nodes, at % nodes)) {
        let given = machine.distances.get(from, to).unwrap_or(if from == to { 10 } else { 20 });
        let seen = results.machine.distances.get(places[from], places[to]);
        assert_eq!(seen, Some(given), "{from} to {to}");
    }
    for order in results.machine.fallback_orders() {
        let own = order.node.0;
        let with_memory = |node: &&u32| {
            results.machine.node(NodeId(**node)).is_some_and(|node| node.memory_bytes > 0)
        };
        let given: Vec<u32> =
            results.orders[own as usize].iter().filter(with_memory).copied().collect();
        let expected: Vec<u32> = order.order.iter().map(|node| node.0).collect();
        assert_eq!(given, expected, "from node {own}");
        assert_eq!(results.orders[own as usize].len(), nodes, "from node {own}");
    }
}

/// Returns the index of the node of a proximity domain. QEMU uses its nodes' numbers as domains;
/// the kernel numbers nodes as Linux does, in order of appearance in the SRAT, cpus before memory.
fn place(results: &Results, domain: u32) -> usize {
    let is_it = |node: &Node| node.proximity_domain == Some(ProximityDomain(domain));
    results.machine.nodes.iter().position(is_it).expect("a node of this domain")
}

/// Checks that the exhaustion took every frame, nearest first, and that all were freed.
fn exhausts_exactly(results: &Results) {
    let refill = results.refill.as_ref().expect("it came to the end");
    assert_eq!((refill.refused_at, refill.after), (0, refill.before));
    assert!(results.fills.iter().all(|fill| fill.left_nearer == 0), "{:?}", results.fills);
    let taken: u64 = results.fills.iter().map(|fill| fill.pieces << fill.order).sum();
    assert_eq!(taken, refill.before);
    let first: Vec<u32> =
        results.fills.iter().filter(|fill| fill.order > 0).map(|fill| fill.node).collect();
    let empty = |node: &u32| results.machine.nodes[*node as usize].memory_bytes < 2 * MIB;
    let expected = results.orders[0].iter().filter(|node| !empty(node));
    assert!(expected.eq(&first), "{first:?}, by distance {:?}", results.orders[0]);
}

#[test]
fn two_nodes_with_32_gib_give_every_thread_its_own_memory() {
    if !has_memory("two nodes with 32 GiB", 32 * GIB) {
        return;
    }
    let Some(qemu) = Qemu::open() else { return };
    let machine = machine("2", 2, 32 * GIB, Some("10,21;21,10"));
    let works = "work=test_numa,storm,guests,chase,bandwidth,exhaust dump=heap";
    let results = qemu.results(&machine, &format!("{works} {SMALL}"));
    sees(&results, &machine);
    exhausts_exactly(&results);
    assert_eq!(results.runs.len(), 2);
    assert_eq!(local_share(&results.runs), 1.0);
    for run in &results.runs {
        assert_eq!(run.held, [[1024, 0], [0, 1024]], "4 MiB each");
        assert_eq!(run.cpus, [0, 1]);
        assert!(run.ticks > 0 && run.read_ticks.iter().all(|&ticks| ticks > 0));
    }
    assert_eq!((results.storms[0].local, results.storms[0].remote), (4000, 0));
    assert_eq!(results.guests.len(), 4);
    assert!(results.guests.iter().all(|guest| guest.remote == 0 && guest.local == 1024));
    // 2 cpus x 2 nodes x 9 windows; each team of each node, and all cpus, by 3 kernels.
    assert_eq!((results.windows.len(), results.streams.len()), (36, 15));
    assert!(results.streams.iter().all(|stream| stream.bytes.iter().all(|&bytes| bytes > 0)));
    let dump = Dump::parse(&results.heap).expect("a dump");
    let free: u64 = dump.blocks().map(|block| block.free_frames()).sum();
    assert!(free * 4096 > 31 * GIB, "{free} frames");
    let document = results.document(&Default::default());
    assert_eq!(document.cells.len(), 4 + 5 * 3 + 1 + 1 + 4);
}

#[test]
fn an_allocator_without_node_knowledge_gives_one_thread_of_n_its_own_memory() {
    let Some(qemu) = Qemu::open() else { return };
    let machine = machine("4", 4, 2 * GIB, None);
    let words = format!("alloc=blind threads=4 work=test_numa,storm,guests {SMALL}");
    let results = qemu.results(&machine, &words);
    assert_eq!(local_share(&results.runs), 0.25);
    assert_eq!(results.storms[0].local * 3, results.storms[0].remote);
    // Each node has a guest, but all guests are on node 0.
    let local = results.guests.iter().filter(|guest| guest.remote == 0).count();
    assert_eq!((local, results.guests.len()), (1, 4));
    // The same cpus with the allocator that knows the nodes.
    let results = qemu.results(&machine, &format!("threads=4 work=test_numa order=0 {SMALL}"));
    assert_eq!(local_share(&results.runs), 1.0);
}

#[test]
fn four_nodes_with_different_distances_fall_back_by_them() {
    let Some(qemu) = Qemu::open() else { return };
    let distances = "10,31,14,22;31,10,22,14;16,22,10,31;22,16,31,10";
    let machine = machine("256M:1,512M:2,256M:2,384M:1", 6, 1408 * MIB, Some(distances));
    let works = "work=exhaust,test_numa,scaling threads=6 rand=seed";
    let results = qemu.results(&machine, &format!("{works} {SMALL}"));
    sees(&results, &machine);
    exhausts_exactly(&results);
    let order: Vec<u32> =
        results.fills.iter().filter(|fill| fill.order == 9).map(|fill| fill.node).collect();
    assert_eq!(order, [0, 2, 3, 1]);
    assert_eq!(local_share(&results.runs), 1.0);
    let cpus: Vec<usize> = results.storms.iter().map(|storm| storm.cpus.len()).collect();
    assert_eq!(cpus, [1, 2, 4, 6]);
}

#[test]
fn a_node_without_cpus_and_one_without_memory_among_eight_are_served() {
    let Some(qemu) = Qemu::open() else { return };
    let nodes = "128M:1,128M:1,0:2,128M:0,128M:1,128M:1,128M:1,128M:1";
    let machine = machine(nodes, 8, 896 * MIB, None);
    let results =
        qemu.results(&machine, &format!("work=test_numa,exhaust,guests threads=8 {SMALL}"));
    sees(&results, &machine);
    exhausts_exactly(&results);
    // Two of the eight threads run on nodes without memory.
    assert_eq!(local_share(&results.runs), 0.75);
    let homeless = place(&results, 2);
    let node = &results.machine.nodes[homeless];
    assert_eq!((node.memory_bytes, node.cpus.len()), (0, 2));
    assert_eq!(results.orders[homeless][0] as usize, homeless);
    let is_home = |guest: &Guest| guest.remote == 0 && guest.node as usize != homeless;
    assert!(results.guests.iter().all(is_home));
    // The node with only memory comes last, because its domain has no cpus.
    assert_eq!((place(&results, 3), results.machine.nodes[7].cpus.len()), (7, 0));
}

#[test]
fn sixteen_cpus_work_at_once() {
    let Some(qemu) = Qemu::open() else { return };
    let machine = machine("4", 16, 2 * GIB, None);
    let results = qemu.results(&machine, &format!("work=storm,test_numa threads=16 {SMALL}"));
    sees(&results, &machine);
    assert_eq!(results.storms[0].cpus.len(), 16);
    assert_eq!(results.storms[0].remote, 0);
    assert_eq!(local_share(&results.runs), 1.0);
    assert_eq!(results.runs[0].cpus, [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15]);
}

#[test]
fn a_map_of_64_nodes_is_read_and_served() {
    let Some(qemu) = Qemu::open() else { return };
    let machine = machine("64", 8, 64 * 64 * MIB, None);
    let results = qemu.results(&machine, "work=exhaust,guests size=2M");
    sees(&results, &machine);
    exhausts_exactly(&results);
    assert_eq!(results.guests.len(), 128);
    assert!(results.guests.iter().all(|guest| guest.remote == 0));
}

#[test]
fn one_cpu_with_64_mib_is_enough() {
    let Some(qemu) = Qemu::open() else { return };
    let words = ["-smp", "1", "-m", "64M"].map(str::to_owned);
    let works = "work=chase,test_numa,storm,bandwidth,guests,scaling,exhaust threads=1";
    let boot = qemu.boot(&words, &format!("{works} {SMALL} size=1M"));
    let results = boot.results(DONE);
    exhausts_exactly(&results);
    assert_eq!(results.machine.nodes.len(), 1);
    assert!(results.machine.memory_bytes() > 40 * MIB);
    assert_eq!(local_share(&results.runs), 1.0);
}

#[test]
fn a_flat_machine_can_be_split_and_a_machine_made_flat() {
    let Some(qemu) = Qemu::open() else { return };
    let flat = ["-smp", "4", "-m", "1G"].map(str::to_owned);
    let results =
        qemu.boot(&flat, &format!("numa=fake=4 threads=4 work=test_numa {SMALL}")).results(DONE);
    assert_eq!(results.machine.nodes.len(), 4);
    assert_eq!(local_share(&results.runs), 1.0);
    let results = qemu.boot(&flat, "numa=fake=256M,512M work=none").results(DONE);
    let sizes: Vec<u64> = results.machine.nodes.iter().map(|node| node.memory_bytes).collect();
    assert_eq!(sizes, [256 * MIB, 512 * MIB]);
    let machine = machine("4", 4, GIB, None);
    let results = qemu.boot(&arguments(&machine), "numa=off work=exhaust").results(DONE);
    assert_eq!(results.machine.nodes.len(), 1);
    exhausts_exactly(&results);
}

#[test]
fn a_policy_decides_the_nodes_of_frames() {
    let Some(qemu) = Qemu::open() else { return };
    let machine = machine("4", 4, GIB, None);
    let held = |policy: &str| {
        let words = format!("threads=1 runs=1 size=8M count=1 work=test_numa policy={policy}");
        qemu.results(&machine, &words).runs[0].held[0].clone()
    };
    assert_eq!(held("preferred:2"), [0, 0, 2048, 0]);
    assert_eq!(held("exact:3"), [0, 0, 0, 2048]);
    assert_eq!(held("bind:1,3"), [0, 2048, 0, 0]);
    assert_eq!(held("interleave"), [512, 512, 512, 512]);
}

#[test]
fn arenas_of_unspecified_size_fit_the_machine() {
    let Some(qemu) = Qemu::open() else { return };
    let machine = machine("2", 2, GIB / 2, None);
    let results = qemu.results(&machine, "work=test_numa count=2000 runs=1");
    let free = results.machine.memory_bytes();
    let bytes = results.runs[0].bytes;
    assert!(bytes > free / 5 && bytes <= free / 4, "{bytes} of {free}");
}
