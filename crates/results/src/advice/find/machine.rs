//! The machine as predictions and placements need it.

use std::collections::BTreeSet;

use numalab_memory_model::curve::Curve;
use numalab_topology::{CpuId, CpuSet, NodeId, NodeSet};
use serde::{Deserialize, Serialize};

/// A machine's topology and costs. Nodes are given by position; a matrix has a row for each
/// cpu's node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MachineCosts {
    /// The source of latencies and caches.
    pub known: CostsKnown,
    /// Node numbers by position.
    pub nodes: Vec<u32>,
    /// Number of cpus of each node.
    pub cpus: Vec<usize>,
    /// True for each node that has memory.
    pub has_memory: Vec<bool>,
    /// The free memory of each node in bytes; empty if unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_bytes: Vec<u64>,
    /// One entry per cpu.
    pub places: Vec<CpuPlace>,
    /// Latency of a memory access, in ns.
    pub latency_ns: Vec<Vec<f64>>,
    /// Latency of a line from another core's cache, in ns: within an L3 group, and between nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer_ns: Option<(f64, f64)>,
    /// Hit latency of the last shared cache, in ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_cache_ns: Option<f64>,
    /// Bandwidth of each node's memory in 10^6 bytes per second, 0 for no limit; empty if there are
    /// no limits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bandwidth_mb_s: Vec<f64>,
    /// Latency curves of each node's memory under load.
    #[serde(skip)]
    pub node_load: Vec<Vec<Curve>>,
    /// Latency curves of links under load, by cpu node and memory node.
    #[serde(skip)]
    pub link_load: Vec<Vec<Vec<Curve>>>,
    /// True if page walks cost anything.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub walks: bool,
    /// The kernel's own settings, where known.
    pub kernel: KernelNow,
}

/// The source of a machine's latencies and caches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CostsKnown {
    /// Given in the description of the machine.
    #[default]
    Described,
    /// Measured on this machine; the name is that of the results or the machine file.
    Measured(String),
    /// Latencies from the firmware (HMAT); the rest is typical.
    Firmware,
    /// Only distances and cache sizes are known; the rest is typical.
    Typical,
}

/// A cpu and what it shares with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CpuPlace {
    /// The cpu's number.
    pub cpu: u32,
    /// The cpu's node.
    pub node: u32,
    /// The cpu's core; SMT siblings have the same.
    pub core: u32,
    /// The cpu's L3 group.
    pub group: u32,
}

/// The settings of the kernel that affect placement.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct KernelNow {
    /// The value of `kernel.numa_balancing`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balancing: Option<u8>,
    /// True if `transparent_hugepage/enabled` is `always`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub huge_always: bool,
}

impl MachineCosts {
    /// Returns the number of cpus; infinity if unknown.
    pub(super) fn all_cpus(&self) -> f64 {
        let all: usize = self.cpus.iter().sum();
        if all > 0 { all as f64 } else { f64::INFINITY }
    }

    /// Returns the nodes with memory, including those without cpus on request.
    pub fn memory_nodes(&self, without_cpus: bool) -> Vec<u32> {
        let all = self.nodes.iter().zip(&self.cpus).zip(&self.has_memory);
        let wanted = all.filter(|((_, cpus), memory)| **memory && (without_cpus || **cpus > 0));
        wanted.map(|((node, _), _)| *node).collect()
    }

    /// Returns `true` if some memory is on nodes without cpus, a slower tier.
    pub fn has_tiers(&self) -> bool {
        let near = self.memory_nodes(false).len();
        near > 0 && near < self.memory_nodes(true).len()
    }

    /// Returns the position of a node.
    pub fn position(&self, node: u32) -> Option<usize> {
        self.nodes.iter().position(|id| *id == node)
    }

    /// Returns the cpus of a node; empty if unknown.
    pub fn cpus_of(&self, node: u32) -> CpuSet {
        let of_node = self.places.iter().filter(|place| place.node == node);
        of_node.map(|place| CpuId(place.cpu)).collect()
    }

    /// Returns the latency from one node's cpus to another's memory in ns; 1 if unknown.
    pub(super) fn pair_ns(&self, cpu: u32, memory: u32) -> f64 {
        let pair = self.position(cpu).zip(self.position(memory));
        let found = pair.and_then(|(cpu, memory)| self.latency_ns.get(cpu)?.get(memory).copied());
        found.filter(|ns| *ns > 0.0).unwrap_or(1.0)
    }

    /// Returns a thread's node if threads fill the cpus node by node in thread order, starting over
    /// when all are full.
    pub(super) fn packed_node(&self, thread: u32) -> Option<u32> {
        let seats = self.nodes.iter().zip(&self.cpus);
        let seats = seats.flat_map(|(node, cpus)| std::iter::repeat_n(*node, *cpus));
        let all: usize = self.cpus.iter().sum();
        seats.clone().nth(usize::try_from(thread).ok()? % all.max(1))
    }

    /// Returns the machine with its bandwidth limits as load curves, by which any thread can use a
    /// memory's whole bandwidth; `None` if it has curves, or no limits. The limits themselves give
    /// each thread a fixed share, so a stream that uses one node after another gets one node's
    /// share at a time. The two are the extremes.
    pub(super) fn with_shared_limits(&self) -> Option<Self> {
        let has_curves = !self.node_load.is_empty() || !self.link_load.is_empty();
        if has_curves || self.bandwidth_mb_s.iter().all(|mb_s| *mb_s <= 0.0) {
            return None;
        }
        let curve = |(node, mb_s): (&u32, &f64)| {
            let ns = self.pair_ns(*node, *node);
            let points = vec![(0.0, ns), (*mb_s, ns)];
            if *mb_s > 0.0 { vec![Curve { writes_percent: 0.0, points }] } else { Vec::new() }
        };
        let node_load = self.nodes.iter().zip(&self.bandwidth_mb_s).map(curve).collect();
        Some(Self { node_load, ..self.clone() })
    }

    /// Returns `true` if two nodes have the same number of cpus and memory of the same speed.
    pub(super) fn are_alike(&self, one: u32, other: u32) -> bool {
        let of = |node: u32| {
            let at = self.position(node)?;
            let mb_s = self.bandwidth_mb_s.get(at).map(|mb_s| mb_s.to_bits());
            Some((self.cpus.get(at), mb_s, self.pair_ns(node, node).to_bits()))
        };
        of(one) == of(other)
    }

    /// Returns the number of L3 groups.
    pub fn groups(&self) -> usize {
        self.places.iter().map(|place| place.group).collect::<BTreeSet<_>>().len()
    }

    /// Returns `true` if cores have several cpus.
    pub fn has_siblings(&self) -> bool {
        let cores: BTreeSet<u32> = self.places.iter().map(|place| place.core).collect();
        cores.len() < self.places.len()
    }
}

pub fn node_list(nodes: &[u32]) -> String {
    nodes.iter().map(|node| NodeId(*node)).collect::<NodeSet>().to_string()
}

pub fn cpu_list(cpus: &[u32]) -> String {
    cpus.iter().map(|cpu| CpuId(*cpu)).collect::<CpuSet>().to_string()
}
