//! A machine as predictions and placements need it.

use std::collections::BTreeSet;

use numalab_memory_model::curve::Curve;
use numalab_topology::{CpuId, CpuSet, NodeId, NodeSet};
use serde::{Deserialize, Serialize};

/// A machine as predictions and placements need it. Nodes by position, rows the cpus' node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineCosts {
    /// Where latencies and caches are from.
    pub known: CostsKnown,
    /// The nodes' numbers.
    pub nodes: Vec<u32>,
    /// CPUs of each node.
    pub cpus: Vec<usize>,
    /// Whether each node has memory.
    pub has_memory: Vec<bool>,
    /// Every CPU, where it is.
    pub places: Vec<CpuPlace>,
    /// ns of an access to memory.
    pub latency_ns: Vec<Vec<f64>>,
    /// ns of a line from another core's cache: within a node's group, and between nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer_ns: Option<(f64, f64)>,
    /// ns of a hit in the caches that cpus share, the farthest of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_cache_ns: Option<f64>,
    /// 10^6 bytes a second of each node's memory, 0 without a limit; none where there are no limits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bandwidth_mb_s: Vec<f64>,
    /// What each node's memory takes under load.
    #[serde(skip)]
    pub node_load: Vec<Vec<Curve>>,
    /// The same of links, by the cpus' node and the memory's.
    #[serde(skip)]
    pub link_load: Vec<Vec<Vec<Curve>>>,
    /// Whether walks of page tables cost anything.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub walks: bool,
    /// What the kernel does by itself, where that is known.
    pub kernel: KernelNow,
}

/// Where a machine's latencies and caches are from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CostsKnown {
    /// Who described the machine said them.
    #[default]
    Described,
    /// They were measured on this machine; the results or the machine file.
    Measured(String),
    /// The firmware (HMAT) tells latencies; all else is typical.
    Firmware,
    /// Nothing is known but distances and sizes of caches: the rest is as on a typical machine.
    Typical,
}

/// A CPU and what it shares with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuPlace {
    /// Its number.
    pub cpu: u32,
    /// Its node.
    pub node: u32,
    /// Its core; SMT siblings have the same.
    pub core: u32,
    /// Its L3 group.
    pub group: u32,
}

/// What a kernel does by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelNow {
    /// `kernel.numa_balancing`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balancing: Option<u8>,
    /// Whether it gives huge pages wherever it can (`transparent_hugepage/enabled` is `always`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub huge_always: bool,
}

impl MachineCosts {
    /// Its CPUs; without end where none are known.
    pub(super) fn all_cpus(&self) -> f64 {
        let all: usize = self.cpus.iter().sum();
        if all > 0 { all as f64 } else { f64::INFINITY }
    }

    /// Nodes that have memory, those without cpus too if these are wanted.
    #[must_use]
    pub fn memory_nodes(&self, without_cpus: bool) -> Vec<u32> {
        let all = self.nodes.iter().zip(&self.cpus).zip(&self.has_memory);
        let wanted = all.filter(|((_, cpus), memory)| **memory && (without_cpus || **cpus > 0));
        wanted.map(|((node, _), _)| *node).collect()
    }

    /// Whether some memory is on nodes without cpus: a slower tier.
    #[must_use]
    pub fn has_tiers(&self) -> bool {
        let near = self.memory_nodes(false).len();
        near > 0 && near < self.memory_nodes(true).len()
    }

    /// The position of a node.
    #[must_use]
    pub fn position(&self, node: u32) -> Option<usize> {
        self.nodes.iter().position(|id| *id == node)
    }

    /// The CPUs of a node, as lists of CPUs are written; none where they are not known.
    #[must_use]
    pub fn cpus_of(&self, node: u32) -> CpuSet {
        let of_node = self.places.iter().filter(|place| place.node == node);
        of_node.map(|place| CpuId(place.cpu)).collect()
    }

    /// ns of an access to a node's memory from the cpus of another; 1 where nobody knows.
    pub(super) fn pair_ns(&self, cpu: u32, memory: u32) -> f64 {
        let pair = self.position(cpu).zip(self.position(memory));
        let found = pair.and_then(|(cpu, memory)| self.latency_ns.get(cpu)?.get(memory).copied());
        found.filter(|ns| *ns > 0.0).unwrap_or(1.0)
    }

    /// The node of a thread if threads take cpus node by node in the order of their numbers, over
    /// and over.
    pub(super) fn packed_node(&self, thread: u32) -> Option<u32> {
        let seats = self.nodes.iter().zip(&self.cpus);
        let seats = seats.flat_map(|(node, cpus)| std::iter::repeat_n(*node, *cpus));
        let all: usize = self.cpus.iter().sum();
        seats.clone().nth(usize::try_from(thread).ok()? % all.max(1))
    }

    /// Groups of CPUs with an L3 of their own.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.places.iter().map(|place| place.group).collect::<BTreeSet<_>>().len()
    }

    /// Whether cores have several CPUs.
    #[must_use]
    pub fn has_siblings(&self) -> bool {
        let cores: BTreeSet<u32> = self.places.iter().map(|place| place.core).collect();
        cores.len() < self.places.len()
    }
}

/// Nodes as lists of them are written.
#[must_use]
pub fn node_list(nodes: &[u32]) -> String {
    nodes.iter().map(|node| NodeId(*node)).collect::<NodeSet>().to_string()
}

/// CPUs as lists of them are written.
#[must_use]
pub fn cpu_list(cpus: &[u32]) -> String {
    cpus.iter().map(|cpu| CpuId(*cpu)).collect::<CpuSet>().to_string()
}
