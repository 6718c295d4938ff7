//! Nodes and cpus while a reader collects them.

use std::collections::BTreeMap;

use numalab_topology::{Cpu, CpuId, CpuSet, Findings, MAX_NODES, Machine, Node, NodeId};

use crate::error::ReadError;

/// Cpus that are looked at for one that another node has.
const MOST_LOOKS: usize = 1024;

/// Nodes and cpus by id.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    nodes: BTreeMap<NodeId, Node>,
    cpus: BTreeMap<CpuId, Cpu>,
    /// Cpus that were put on a node.
    placed: CpuSet,
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

    /// Puts cpus on a node; those that already are on another one stay there.
    pub(crate) fn place(
        &mut self,
        cpus: &CpuSet,
        node: NodeId,
        place: &str,
        findings: &mut Findings,
    ) {
        self.node(node);
        for id in cpus.difference(&self.placed).iter() {
            self.cpu(id).node = Some(node);
        }
        let elsewhere = |id: &CpuId| self.cpus.get(id).is_some_and(|cpu| cpu.node != Some(node));
        // One look at a few of them: a damaged text can name all cpus on all nodes.
        let again = cpus.intersection(&self.placed).iter().take(MOST_LOOKS).find(elsewhere);
        if let Some(id) = again {
            let first = self.cpus.get(&id).and_then(|cpu| cpu.node).unwrap_or_default();
            let message = format!("cpu {id} is on node {first} already, kept there");
            findings.warning("cpu-twice", place, message);
        }
        self.placed.extend_from(cpus);
    }

    /// The machine of these nodes and cpus, without anything else.
    ///
    /// # Errors
    /// [`ReadError::TooMany`] for more than [`MAX_NODES`] nodes.
    pub(crate) fn finish(mut self, format: &'static str) -> Result<Machine, ReadError> {
        let found = self.nodes.len();
        if found > MAX_NODES {
            let (what, most) = ("nodes", MAX_NODES);
            return Err(ReadError::TooMany { format, what, found, most });
        }
        for cpu in self.cpus.values() {
            if let Some(node) = cpu.node.and_then(|id| self.nodes.get_mut(&id)) {
                node.cpus.insert(cpu.id);
            }
        }
        Ok(Machine {
            nodes: self.nodes.into_values().collect(),
            cpus: self.cpus.into_values().collect(),
            ..Machine::default()
        })
    }
}
