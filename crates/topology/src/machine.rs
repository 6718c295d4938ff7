//! The machine as a value.

use alloc::vec::Vec;

use crate::access::{AccessAttributes, AccessClass};
use crate::cache::{Cache, CacheKind};
use crate::cpu::Cpu;
use crate::device::Device;
use crate::distance::{Distances, UNREACHABLE_DISTANCE};
use crate::id::{CpuId, NodeId};
use crate::id_set::{CpuSet, NodeSet};
use crate::memory::MemoryRange;
use crate::node::{MemoryTier, Node};

/// The largest number of nodes of a machine, as in Linux (`CONFIG_NODES_SHIFT` of 10). Readers
/// refuse more, so that a matrix of distances stays within a few megabytes.
pub const MAX_NODES: usize = 1024;

/// A machine: nodes and cpus in ascending order of their ids, and the relations between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Machine {
    /// The nodes by ascending id; the position is the dense index.
    pub nodes: Vec<Node>,
    /// The cpus by ascending id, offline ones included.
    pub cpus: Vec<Cpu>,
    /// Distances by dense node index; empty if none is known.
    pub distances: Distances,
    /// The caches, each once.
    pub caches: Vec<Cache>,
    /// Physical memory by ascending base, if known.
    pub ranges: Vec<MemoryRange>,
    /// Access attributes from the firmware, if it gives any.
    pub access: Vec<AccessAttributes>,
    /// Memory tiers, fastest first, if the system has them.
    pub tiers: Vec<MemoryTier>,
    /// Devices on PCI by their addresses, if known.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub devices: Vec<Device>,
    /// The resources that the calling process may use, for a live machine.
    pub allowed: Option<Allowed>,
}

/// The resources that a process may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Allowed {
    /// Cpus on which it may run.
    pub cpus: CpuSet,
    /// Nodes from which it may take memory.
    pub memory_nodes: NodeSet,
    /// Isolated cpus, on which the process runs only on request.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "CpuSet::is_empty"))]
    pub isolated: CpuSet,
}

/// Cpus that share a core, an L3 group or a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuGroup {
    /// The number of the core, L3 group or package.
    pub number: u32,
    /// The cpus, offline ones included.
    pub cpus: CpuSet,
}

impl Machine {
    /// Returns the node with this id.
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.node_index(id).and_then(|index| self.nodes.get(index))
    }

    /// Returns the dense index of the node with this id.
    pub fn node_index(&self, id: NodeId) -> Option<usize> {
        self.nodes.binary_search_by_key(&id, |node| node.id).ok()
    }

    /// Returns the cpu with this id.
    pub fn cpu(&self, id: CpuId) -> Option<&Cpu> {
        let index = self.cpus.binary_search_by_key(&id, |cpu| cpu.id).ok()?;
        self.cpus.get(index)
    }

    /// Returns the cpu with this id, to change it.
    pub fn cpu_mut(&mut self, id: CpuId) -> Option<&mut Cpu> {
        let index = self.cpus.binary_search_by_key(&id, |cpu| cpu.id).ok()?;
        self.cpus.get_mut(index)
    }

    /// Returns the tier of a node's memory, if the system has tiers.
    pub fn tier_of(&self, id: NodeId) -> Option<u32> {
        let tier = self.tiers.iter().find(|tier| tier.nodes.contains(id));
        tier.map(|tier| tier.id)
    }

    /// Returns the best latency and bandwidth of reading a node's memory that the firmware gives
    /// for any node's cpus: in picoseconds, and in 10^6 bytes per second. Those of other
    /// initiators, such as a GPU or a network card, do not count.
    pub fn best_read(&self, target: NodeId) -> (Option<u64>, Option<u64>) {
        let cpus = self.cpu_nodes();
        let is_of_cpus = |access: &&AccessAttributes| {
            access.class == AccessClass::Cpu || cpus.contains(access.initiator)
        };
        let of_node = || {
            let of_node = self.access.iter().filter(|access| access.target == target);
            of_node.filter(is_of_cpus)
        };
        (
            of_node().filter_map(|access| access.read_latency_ps).min(),
            of_node().filter_map(|access| access.read_bandwidth_mb_per_s).max(),
        )
    }

    /// Returns the distance from one node to another, if known.
    pub fn distance(&self, from: NodeId, to: NodeId) -> Option<u8> {
        self.distances.get(self.node_index(from)?, self.node_index(to)?)
    }

    /// Returns the distance from one node to another as a cost; `None` also if one cannot be
    /// reached.
    pub fn cost_distance(&self, from: NodeId, to: NodeId) -> Option<u8> {
        self.distance(from, to).filter(|&distance| distance != UNREACHABLE_DISTANCE)
    }

    /// Returns the online cpus.
    pub fn online_cpus(&self) -> CpuSet {
        self.cpus.iter().filter(|cpu| cpu.online).map(|cpu| cpu.id).collect()
    }

    /// Returns the device with this name or address.
    pub fn device(&self, name: &str) -> Option<&Device> {
        self.devices.iter().find(|device| device.is_called(name))
    }

    /// Returns the online cpus that the calling process may run on, or all online cpus if the
    /// restriction is unknown.
    pub fn usable_cpus(&self) -> CpuSet {
        match &self.allowed {
            Some(allowed) => self.online_cpus().intersection(&allowed.cpus),
            None => self.online_cpus(),
        }
    }

    /// Returns the nodes with memory that the calling process may use, or all of them if the
    /// restriction is unknown.
    pub fn usable_memory_nodes(&self) -> NodeSet {
        let nodes = self.memory_nodes();
        match &self.allowed {
            Some(Allowed { memory_nodes, .. }) if !memory_nodes.is_empty() => {
                nodes.intersection(memory_nodes)
            }
            _ => nodes,
        }
    }

    /// Returns one cpu of every core: the first thread that is online and that the calling process may
    /// use; cores are those of [`Machine::one_per_core`].
    pub fn first_threads(&self) -> Vec<CpuId> {
        self.one_per_core(&self.usable_cpus())
    }

    /// Returns one of `cpus` per core: the first thread, in order of package, L3 group and core. A
    /// cpu of unknown core counts as a core.
    pub fn one_per_core(&self, cpus: &CpuSet) -> Vec<CpuId> {
        let chosen = self.cpus.iter().filter(|cpu| cpus.contains(cpu.id));
        let mut chosen: Vec<&Cpu> = chosen.collect();
        chosen.sort_by_key(|cpu| (cpu.package, cpu.l3_group, cpu.core, cpu.thread, cpu.id));
        chosen.dedup_by(|next, first| next.core.is_some() && next.core == first.core);
        chosen.into_iter().map(|cpu| cpu.id).collect()
    }

    /// Returns the nodes that are online and have memory, or may have some.
    pub fn memory_nodes(&self) -> NodeSet {
        let has_memory = |node: &&Node| node.online && node.may_have_memory();
        self.nodes.iter().filter(has_memory).map(|node| node.id).collect()
    }

    /// Returns the nodes that have at least one online cpu.
    pub fn cpu_nodes(&self) -> NodeSet {
        let mut named: NodeSet =
            self.cpus.iter().filter(|cpu| cpu.online).filter_map(|cpu| cpu.node).collect();
        let shares =
            |node: &&Node| self.first_with_cpus_of(node).is_some_and(|of| named.contains(of));
        let sharing: NodeSet = self.nodes.iter().filter(shares).map(|node| node.id).collect();
        named.extend_from(&sharing);
        named
    }

    /// Returns the first node that lists exactly the cpus of `node`, if another one does: Linux on
    /// x86 with `numa=fake` lists the cpus of a real node for each part of it. A cpu names the
    /// first.
    pub fn first_with_cpus_of(&self, node: &Node) -> Option<NodeId> {
        let mut before = self.nodes.iter().take_while(|other| other.id != node.id);
        let first = before.find(|other| !node.cpus.is_empty() && other.cpus == node.cpus)?;
        Some(first.id)
    }

    /// Returns true if the machine has memory of CXL devices.
    #[must_use]
    pub fn has_cxl(&self) -> bool {
        self.nodes.iter().any(|node| node.cxl)
    }

    /// Returns the tiers starting with that of the cpus: first that one, then the slower ones.
    pub fn tiers_from_cpus(&self) -> Vec<&MemoryTier> {
        let with_cpus = self.cpu_nodes();
        let is_fast = |tier: &&MemoryTier| !tier.nodes.intersection(&with_cpus).is_empty();
        let Some(fast) = self.tiers.iter().find(is_fast) else { return Vec::new() };
        let slower = self.tiers.iter().filter(|tier| tier.id > fast.id);
        core::iter::once(fast).chain(slower).collect()
    }

    /// Returns the memory of all nodes in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.nodes.iter().fold(0, |sum, node| sum.saturating_add(node.memory_bytes))
    }

    /// Returns the packages (sockets) by number.
    pub fn packages(&self) -> Vec<CpuGroup> {
        self.groups(|cpu| cpu.package)
    }

    /// Returns the cores by dense index, with SMT siblings in one group.
    pub fn cores(&self) -> Vec<CpuGroup> {
        self.groups(|cpu| cpu.core)
    }

    /// Returns the L3 groups (CCDs on AMD) by dense index.
    pub fn l3_groups(&self) -> Vec<CpuGroup> {
        self.groups(|cpu| cpu.l3_group)
    }

    /// Returns the caches that hold data for `cpu`, nearest first.
    pub fn data_caches_of(&self, cpu: CpuId) -> Vec<&Cache> {
        let holds_data =
            |cache: &&Cache| cache.kind != CacheKind::Instruction && cache.cpus.contains(cpu);
        let mut caches: Vec<&Cache> = self.caches.iter().filter(holds_data).collect();
        caches.sort_by_key(|cache| cache.level);
        caches
    }

    fn groups(&self, number_of: impl Fn(&Cpu) -> Option<u32>) -> Vec<CpuGroup> {
        let mut groups: Vec<CpuGroup> = Vec::new();
        for cpu in &self.cpus {
            let Some(number) = number_of(cpu) else {
                continue;
            };
            match groups.binary_search_by_key(&number, |group| group.number) {
                Ok(index) => {
                    groups[index].cpus.insert(cpu.id);
                }
                Err(index) => {
                    let cpus = CpuSet::from_iter([cpu.id]);
                    groups.insert(index, CpuGroup { number, cpus });
                }
            }
        }
        groups
    }
}
