//! The nodes of this machine.

use std::collections::HashMap;

use numalab_record::profile::ProfiledNode;
use numalab_topology::{CpuSet, Machine, Node};

/// The node of each cpu, and whether there is a choice for memory.
#[derive(Clone, Debug)]
pub(crate) struct Nodes {
    of_cpu: HashMap<u32, u32>,
    only: Option<u32>,
    cpus: CpuSet,
    pub all: Vec<ProfiledNode>,
}

/// Returns all nodes of a machine, with their cpus.
pub fn profiled_nodes(machine: &Machine) -> Vec<ProfiledNode> {
    let node = |node: &Node| ProfiledNode { node: node.id, cpus: node.cpus.clone() };
    machine.nodes.iter().map(node).collect()
}

impl Nodes {
    pub(crate) fn of(machine: &Machine) -> Self {
        let of_cpu = machine.cpus.iter().filter_map(|cpu| Some((cpu.id.0, cpu.node?.0))).collect();
        let memory = machine.memory_nodes();
        let only = memory.first().filter(|_| memory.len() == 1);
        Self {
            of_cpu,
            only: only.map(|node| node.0),
            cpus: machine.online_cpus(),
            all: profiled_nodes(machine),
        }
    }

    /// Returns the node of a cpu; the first node for a cpu that came online meanwhile.
    pub(crate) fn of_cpu(&self, cpu: u32) -> u32 {
        let first = || self.all.first().map_or(0, |node| node.node.0);
        self.of_cpu.get(&cpu).copied().unwrap_or_else(first)
    }

    /// Returns the node with memory, if there is only one.
    pub(crate) fn only(&self) -> Option<u32> {
        self.only
    }

    pub(crate) fn cpus(&self) -> &CpuSet {
        &self.cpus
    }
}

#[cfg(test)]
mod tests;
