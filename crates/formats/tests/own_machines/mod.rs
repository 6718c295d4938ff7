//! Five machines of our own, each unusual in a different way.

use numalab_formats::emulation;
use numalab_topology::{
    AccessAttributes, AccessClass, Cache, CacheKind, CpuId, Machine, MemorySideCache, NodeId,
    UniformMachine,
};

/// Returns the five machines with their names.
pub fn all() -> [(&'static str, Machine); 5] {
    [
        ("two_nodes", two_nodes()),
        ("small_epyc", small_epyc()),
        ("memory_only", memory_only()),
        ("sparse", sparse()),
        ("uneven", uneven()),
    ]
}

fn uniform(cpus: u32, threads_per_core: u32, packages: u32, l3_groups: u32, gib: u64) -> Machine {
    let shape =
        UniformMachine { cpus, threads_per_core, packages, l3_groups, memory_bytes: gib << 30 };
    shape.build().unwrap()
}

fn emulate(base: &Machine, nodes: &str, distances: Option<&str>) -> Machine {
    emulation::parse(nodes, distances).unwrap().emulate(base).unwrap()
}

/// Returns two packages with a node and four cpus each.
pub fn two_nodes() -> Machine {
    emulate(&uniform(8, 1, 2, 2, 8), "2", None)
}

/// Returns two packages of two nodes of two L3 groups of two cores; siblings are numbered after all
/// first threads, as Linux does on x86.
pub fn small_epyc() -> Machine {
    let distances = "10,12,32,32;12,10,32,32;32,32,10,12;32,32,12,10";
    let mut machine = emulate(&uniform(32, 2, 2, 8, 32), "4", Some(distances));
    for cpu in &mut machine.cpus {
        cpu.id = CpuId(cpu.core.unwrap() + 16 * cpu.thread);
    }
    machine.cpus.sort_by_key(|cpu| cpu.id);
    for node in &mut machine.nodes {
        let own = machine.cpus.iter().filter(|cpu| cpu.node == Some(node.id));
        node.cpus = own.map(|cpu| cpu.id).collect();
    }
    let cache = |level, kind, size_bytes, cpus| Cache {
        level,
        kind,
        size_bytes: Some(size_bytes),
        line_bytes: Some(64),
        ways: Some(8),
        cpus,
    };
    for core in machine.cores() {
        machine.caches.push(cache(1, CacheKind::Data, 32 << 10, core.cpus));
    }
    for core in machine.cores() {
        machine.caches.push(cache(1, CacheKind::Instruction, 32 << 10, core.cpus));
    }
    for group in machine.l3_groups() {
        machine.caches.push(cache(3, CacheKind::Unified, 32 << 20, group.cpus));
    }
    machine
}

/// Returns two nodes with cpus and two without, with HMAT data.
pub fn memory_only() -> Machine {
    let distances = "10,21,14,24;21,10,24,14;14,24,10,26;24,14,26,10";
    let mut machine = emulate(&uniform(4, 1, 2, 2, 8), "1G:2,1G:2,2G:0,4G:0", Some(distances));
    for (initiator, target, ps, mb) in [
        (0, 0, 100_000, 100_000),
        (0, 1, 200_000, 60_000),
        (0, 2, 250_000, 30_000),
        (0, 3, 400_000, 20_000),
        (1, 0, 200_000, 60_000),
        (1, 1, 100_000, 100_000),
        (1, 2, 400_000, 20_000),
        (1, 3, 250_000, 30_000),
    ] {
        machine.access.push(AccessAttributes {
            initiator: NodeId(initiator),
            target: NodeId(target),
            class: AccessClass::Cpu,
            read_latency_ps: Some(ps),
            write_latency_ps: Some(ps + if target > 1 { 50_000 } else { 0 }),
            read_bandwidth_mb_per_s: Some(mb),
            write_bandwidth_mb_per_s: Some(mb),
        });
    }
    machine.nodes[2].memory_side_caches.push(MemorySideCache {
        level: 1,
        size_bytes: 64 << 20,
        line_bytes: Some(64),
        ways: Some(1),
    });
    machine
}

/// Returns a machine with gaps in its node numbers, an offline cpu, and one empty node.
pub fn sparse() -> Machine {
    let mut machine =
        emulate(&uniform(4, 1, 2, 2, 4), "2G:2,2G:2,0:0", Some("10,40,80;40,10,80;80,80,10"));
    machine.cpus[3].online = false;
    for (index, id) in [0, 8, 252].into_iter().enumerate() {
        let (old, new) = (machine.nodes[index].id, NodeId(id));
        machine.nodes[index].id = new;
        machine
            .cpus
            .iter_mut()
            .filter(|cpu| cpu.node == Some(old))
            .for_each(|cpu| cpu.node = Some(new));
        machine
            .ranges
            .iter_mut()
            .filter(|range| range.node == old)
            .for_each(|range| range.node = new);
    }
    machine
}

/// Nodes of one, two and three cpus, one of them without memory, one package.
pub fn uneven() -> Machine {
    emulate(&uniform(6, 1, 1, 1, 4), "1G:1,3G:2,0:3", Some("10,20,15;20,10,15;15,15,10"))
}
