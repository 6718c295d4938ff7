//! Conversion of a machine file to the memory system of a guest.

use std::collections::BTreeSet;

use numalab_memory_model::curve::Curve;
use numalab_memory_model::machine::{
    CacheLevel, Machine as EmulatedMachine, Scope, Stage, Transfers,
};
use numalab_topology::{Cache, CacheKind, CpuId, Machine, NodeId};

use super::{BandwidthModel, LatencyModel, MemoryCosts, checked, describe};
use crate::error::WriteError;
use crate::machine_toml::{LoadFigures, MachineFile};

/// Ways of the first, the second, and any further cache, if the file does not give them.
const USUAL_WAYS: [u32; 3] = [8, 8, 16];
const LINE_BYTES: u32 = 64;

impl MachineFile {
    /// Describes the memory system of a guest that is this machine, or `guest`, which has all or
    /// some of its nodes with fewer cpus and less memory.
    ///
    /// # Errors
    /// As [`describe`]; latencies must be given for every pair of nodes.
    pub fn emulated(&self, guest: &Machine) -> Result<EmulatedMachine, WriteError> {
        let figures = &self.memory;
        let known =
            |access: &numalab_topology::AccessAttributes| access.read_bandwidth_mb_per_s.is_some();
        let by_firmware = figures.load.is_empty() && self.machine.access.iter().all(known);
        let bandwidth =
            if by_firmware { BandwidthModel::Firmware } else { BandwidthModel::Unlimited };
        let costs = MemoryCosts {
            latency: LatencyModel::Firmware,
            bandwidth,
            caches: self.caches(),
            stages: if by_firmware { vec![Stage::Load] } else { Vec::new() },
        };
        let mut described = describe(guest, &costs)?;
        described.core = figures.core;
        described.other_page_ns = figures.other_page_ns.unwrap_or_default();
        described.faults = figures.faults;
        described.calls = figures.calls;
        described.tlb.clone_from(&figures.tlb);
        described.transfers = self.transfers(guest);
        if !figures.load.is_empty() {
            self.load(guest, &mut described);
        }
        checked(described)
    }

    /// Returns the machine's data caches by level, each level like its first cache.
    pub fn caches(&self) -> Vec<CacheLevel> {
        let data = |cache: &&Cache| cache.kind != CacheKind::Instruction;
        let levels: BTreeSet<u8> =
            self.machine.caches.iter().filter(data).map(|cache| cache.level).collect();
        let last = levels.last().copied();
        let level = |(at, level): (usize, u8)| {
            let cache = self.machine.caches.iter().filter(data).find(|c| c.level == level)?;
            let of_one = self.is_of_one_core(cache);
            let life_ns = self.memory.life_ns.filter(|_| !of_one && Some(level) == last);
            Some(CacheLevel {
                level,
                size_bytes: cache.size_bytes?,
                ways: cache.ways.unwrap_or(USUAL_WAYS[at.min(2)]),
                line_bytes: cache.line_bytes.unwrap_or(LINE_BYTES),
                scope: if of_one { Scope::Cpu } else { Scope::Group },
                latency_ns: self.memory.cache_latency_ns.get(at).copied().unwrap_or_default(),
                life_ns: life_ns.unwrap_or_default(),
            })
        };
        levels.into_iter().enumerate().filter_map(level).collect()
    }

    /// Returns the latencies of cache lines transferred from core to core, between the nodes of the
    /// guest.
    fn transfers(&self, guest: &Machine) -> Option<Transfers> {
        let mut transfers = self.memory.transfers.clone()?;
        let online = |machine: &Machine| -> Vec<NodeId> {
            machine.nodes.iter().filter(|node| node.online).map(|node| node.id).collect()
        };
        let (all, kept) = (online(&self.machine), online(guest));
        let of_guest = |at: usize| all.get(at).is_none_or(|id| kept.contains(id));
        for row in &mut transfers.node_ns {
            let mut column = 0..;
            row.retain(|_| column.next().is_some_and(of_guest));
        }
        let mut row = 0..;
        transfers.node_ns.retain(|_| row.next().is_some_and(of_guest));
        Some(transfers)
    }

    fn is_of_one_core(&self, cache: &Cache) -> bool {
        let core = |id: CpuId| {
            let cpu = self.machine.cpu(id);
            cpu.map(|cpu| (cpu.package, cpu.core)).filter(|(_, core)| core.is_some())
        };
        let cores: BTreeSet<_> = cache.cpus.iter().map(core).collect();
        cache.cpus.len() == 1 || (cores.len() == 1 && !cores.contains(&None))
    }

    /// Sets curves in place of limits.
    fn load(&self, guest: &Machine, described: &mut EmulatedMachine) {
        let nodes: Vec<NodeId> =
            guest.nodes.iter().filter(|node| node.online).map(|node| node.id).collect();
        let latency_ns = described.latency_ns.clone();
        let curves = |figures: &LoadFigures, from: usize, to: usize| -> Vec<Curve> {
            match figures.peak_mb_s {
                Some(peak_mb_s) => Curve::typical(peak_mb_s, latency_ns[from][to].max(1.0)),
                None => figures.curves.clone(),
            }
        };
        let of_node = |to: usize| {
            let named = |load: &&LoadFigures| load.from.is_none() && load.nodes.contains(nodes[to]);
            let initiator = nearest(guest, &latency_ns, to);
            let load = self.memory.load.iter().find(named);
            load.map_or_else(Vec::new, |load| curves(load, initiator, to))
        };
        let of_link = |from: usize, to: usize| {
            let named = |load: &&LoadFigures| {
                let from = load.from.as_ref().is_some_and(|set| set.contains(nodes[from]));
                from && load.nodes.contains(nodes[to])
            };
            let load = self.memory.load.iter().find(named);
            load.map_or_else(Vec::new, |load| curves(load, from, to))
        };
        let all = 0..nodes.len();
        described.node_load = Some(all.clone().map(of_node).collect());
        let row = |from: usize| all.clone().map(|to| of_link(from, to)).collect();
        described.link_load = Some(all.clone().map(row).collect());
    }
}

/// Returns the node with cpus that is nearest to a node's memory.
fn nearest(guest: &Machine, latency_ns: &[Vec<f64>], to: usize) -> usize {
    let online = guest.nodes.iter().filter(|node| node.online);
    let with_cpus = online.enumerate().filter(|(_, node)| !node.cpus.is_empty());
    let near = |&a: &usize, &b: &usize| latency_ns[a][to].total_cmp(&latency_ns[b][to]);
    with_cpus.map(|(at, _)| at).min_by(near).unwrap_or(to)
}
