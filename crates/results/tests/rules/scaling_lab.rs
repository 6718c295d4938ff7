//! Synthetic scaling runs, on a machine of two nodes with two CCDs of four cores each.

use numalab_record::scaling::{Mode, RankPlace, Scaling, ScalingMetric, ScalingStep};
use numalab_topology::{Cache, CacheKind, Cpu, CpuId, CpuSet, Distances, Machine, Node, NodeId};

pub const MIB: u64 = 1 << 20;

pub fn machine() -> Machine {
    let cpu = |id| Cpu {
        id: CpuId(id),
        online: true,
        node: Some(NodeId(id / 8)),
        l3_group: Some(id / 4),
        core: Some(id),
        ..Cpu::default()
    };
    let node = |id| Node { id: NodeId(id), online: true, memory_bytes: 1, ..Node::default() };
    let cache = |level, kind, bytes, cpus: std::ops::Range<u32>| Cache {
        level,
        kind,
        size_bytes: Some(bytes),
        line_bytes: Some(64),
        ways: None,
        cpus: cpus.map(CpuId).collect::<CpuSet>(),
    };
    let mut caches = vec![cache(1, CacheKind::Instruction, 64 << 10, 0..1)];
    for id in 0..16 {
        caches.push(cache(2, CacheKind::Unified, MIB, id..id + 1));
        caches.push(cache(1, CacheKind::Data, 32 << 10, id..id + 1));
    }
    caches.extend((0..4).map(|ccd| cache(3, CacheKind::Unified, 32 * MIB, 4 * ccd..4 * ccd + 4)));
    Machine {
        nodes: vec![node(0), node(1)],
        cpus: (0..16).map(cpu).collect(),
        distances: Distances::uniform(2, 32),
        caches,
        ..Machine::default()
    }
}

/// Returns a step at 512 MiB with one latency in ns per rank, without placement.
pub fn step(file: &str, values: &[f64]) -> ScalingStep {
    ScalingStep {
        file: file.to_owned(),
        run: String::new(),
        mode: Mode::Sequential,
        domains: vec![0],
        metric: ScalingMetric::Latency,
        serial: false,
        complete: true,
        sizes_bytes: vec![512 * MIB],
        values: vec![values.to_vec()],
        medians: Vec::new(),
        places: vec![None; values.len()],
        disturbed: None,
    }
}

/// Returns a step with ranks on these cpus and memory on these nodes.
pub fn placed(file: &str, values: &[f64], places: &[(u32, u32)]) -> ScalingStep {
    let place = |&(cpu, node): &(u32, u32)| {
        let memory_node = Some(NodeId(node));
        Some(RankPlace { cpu: CpuId(cpu), cpu_node: None, memory_node })
    };
    ScalingStep { places: places.iter().map(place).collect(), ..step(file, values) }
}

/// Returns a step of one rank over these sizes in MiB.
pub fn sweep(file: &str, figures: &[(f64, f64)], cpu: Option<u32>) -> ScalingStep {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes of tests")]
    let bytes = |mib: f64| (mib * MIB as f64) as u64;
    let memory_node = Some(NodeId(0));
    let place = cpu.map(|cpu| RankPlace { cpu: CpuId(cpu), cpu_node: None, memory_node });
    ScalingStep {
        sizes_bytes: figures.iter().map(|(mib, _)| bytes(*mib)).collect(),
        values: figures.iter().map(|(_, ns)| vec![*ns]).collect(),
        places: vec![place],
        ..step(file, &[1.0])
    }
}

pub fn scaling(machine: Option<Machine>, steps: Vec<ScalingStep>) -> Scaling {
    Scaling { name: "lab".to_owned(), machine, steps, findings: Vec::new() }
}
