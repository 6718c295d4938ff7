//! Nodes and cpus collected by a reader.

use std::collections::BTreeMap;

use numalab_topology::{Cpu, CpuId, CpuSet, Findings, MAX_NODES, Machine, Node, NodeId};

use crate::error::ReadError;

/// The largest number of cpus that are searched for one that is already on another node.
const MOST_LOOKS: usize = 1024;

/// Nodes and cpus by id.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    nodes: BTreeMap<NodeId, Node>,
    cpus: BTreeMap<CpuId, Cpu>,
    /// Cpus that are on a node.
    placed: CpuSet,
}

impl Assembly {
    /// Returns the node with this id, which is created online and empty if it is new.
    pub(crate) fn node(&mut self, id: NodeId) -> &mut Node {
        self.nodes.entry(id).or_insert_with(|| Node { id, online: true, ..Node::default() })
    }

    /// Returns the cpu with this id, which is created online and without a node if it is new.
    pub(crate) fn cpu(&mut self, id: CpuId) -> &mut Cpu {
        self.cpus.entry(id).or_insert_with(|| Cpu { id, online: true, ..Cpu::default() })
    }

    /// Returns true if the cpu with this id was seen.
    pub(crate) fn has_cpu(&self, id: CpuId) -> bool {
        self.cpus.contains_key(&id)
    }

    /// Returns the ids of the nodes seen, ascending.
    pub(crate) fn node_ids(&self) -> Vec<NodeId> {
        self.nodes.keys().copied().collect()
    }

    /// Puts cpus on a node; those that are already on another node stay there.
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
        // Only a few of them are searched: a damaged text can list all cpus on all nodes.
        let again = cpus.intersection(&self.placed).iter().take(MOST_LOOKS).find(elsewhere);
        if let Some(id) = again {
            let first = self.cpus.get(&id).and_then(|cpu| cpu.node).unwrap_or_default();
            let message = format!("cpu {id} is already on node {first} and stays there");
            findings.warning("cpu-twice", place, message);
        }
        self.placed.extend_from(cpus);
    }

    /// Returns the machine with only these nodes and cpus.
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
