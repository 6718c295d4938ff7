//! Nodes and cpus while a reader collects them.

use std::collections::BTreeMap;

use numalab_topology::{Cpu, CpuId, Distances, Machine, Node, NodeId};

use crate::reading::Findings;

/// Nodes and cpus by id.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    nodes: BTreeMap<NodeId, Node>,
    cpus: BTreeMap<CpuId, Cpu>,
}

impl Assembly {
    /// The node with this id, made online and empty if it is new.
    pub(crate) fn node(&mut self, id: NodeId) -> &mut Node {
        self.nodes.entry(id).or_insert_with(|| Node { id, online: true, ..Node::default() })
    }

    /// The cpu with this id, made online and unplaced if it is new.
    pub(crate) fn cpu(&mut self, id: CpuId) -> &mut Cpu {
        self.cpus.entry(id).or_insert_with(|| Cpu { id, online: true, ..Cpu::default() })
    }

    /// Whether a cpu with this id was seen.
    pub(crate) fn has_cpu(&self, id: CpuId) -> bool {
        self.cpus.contains_key(&id)
    }

    /// The ids of the nodes seen, ascending.
    pub(crate) fn node_ids(&self) -> Vec<NodeId> {
        self.nodes.keys().copied().collect()
    }

    /// Puts a cpu on a node; if it already is on another one it stays there.
    pub(crate) fn place(&mut self, cpu: CpuId, node: NodeId, place: &str, found: &mut Findings) {
        self.node(node);
        let cpu = self.cpu(cpu);
        match cpu.node {
            None => cpu.node = Some(node),
            Some(first) if first == node => {}
            Some(first) => {
                let message = format!("cpu {} is on node {first} already, kept there", cpu.id);
                found.warning("cpu-twice", place.to_owned(), message);
            }
        }
    }

    /// The machine of these nodes and cpus, without anything else.
    pub(crate) fn finish(mut self) -> Machine {
        for cpu in self.cpus.values() {
            if let Some(node) = cpu.node.and_then(|id| self.nodes.get_mut(&id)) {
                node.cpus.insert(cpu.id);
            }
        }
        Machine {
            nodes: self.nodes.into_values().collect(),
            cpus: self.cpus.into_values().collect(),
            distances: Distances::default(),
            ..Machine::default()
        }
    }
}
