//! Nodes and cpus collected by a reader.

use std::collections::BTreeMap;

use numalab_topology::{
    Cpu, CpuId, CpuSet, Findings, LOCAL_DISTANCE, MAX_NODES, Machine, Node, NodeId, NodeSet,
};

use crate::error::ReadError;

/// The largest number of cpus that are searched for one that is already on another node.
const MOST_LOOKS: usize = 1024;

/// Nodes and cpus by id.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    nodes: BTreeMap<NodeId, Node>,
    cpus: BTreeMap<CpuId, Cpu>,
    /// The cpus of each node, with the place in the text.
    claims: BTreeMap<NodeId, (CpuSet, String)>,
    /// Cpus that are on a node.
    placed: CpuSet,
}

/// Cpus that nodes claim, in addition to the cpus that name their node.
#[derive(Debug, Default)]
pub(crate) struct Claims(BTreeMap<NodeId, (CpuSet, String)>);

impl Assembly {
    /// Returns the node with this id, creating it online and empty if it is new.
    pub(crate) fn node(&mut self, id: NodeId) -> &mut Node {
        self.nodes.entry(id).or_insert_with(|| Node { id, online: true, ..Node::default() })
    }

    /// Returns the cpu with this id, creating it online and without a node if it is new.
    pub(crate) fn cpu(&mut self, id: CpuId) -> &mut Cpu {
        self.cpus.entry(id).or_insert_with(|| Cpu { id, online: true, ..Cpu::default() })
    }

    /// Returns true if the cpu with this id was seen.
    pub(crate) fn has_cpu(&self, id: CpuId) -> bool {
        self.cpus.contains_key(&id)
    }

    /// Returns the ids of the cpus seen, ascending.
    pub(crate) fn cpu_ids(&self) -> impl Iterator<Item = CpuId> {
        self.cpus.keys().copied()
    }

    /// Returns the ids of the nodes seen, ascending.
    pub(crate) fn node_ids(&self) -> Vec<NodeId> {
        self.nodes.keys().copied().collect()
    }

    /// Puts cpus on a node; those that are already on another node stay there.
    pub(crate) fn place(&mut self, cpus: &CpuSet, node: NodeId, place: &str) {
        self.node(node);
        for id in cpus.difference(&self.placed).iter() {
            self.cpu(id).node = Some(node);
        }
        self.placed.extend_from(cpus);
        let claim = self.claims.entry(node).or_insert_with(|| (CpuSet::new(), place.to_owned()));
        claim.0.extend_from(cpus);
    }

    /// Places every known cpu on the node with the smallest set that contains it, or, among equal sets, on
    /// the node with the smallest number: the others are additional memory at the same place. Returns the
    /// cpus placed.
    pub(crate) fn place_by_smallest(&mut self, mut sets: Vec<(NodeId, CpuSet)>) -> CpuSet {
        sets.sort_by_key(|(node, set)| (set.len(), *node));
        let mut placed = CpuSet::new();
        for (node, set) in sets {
            for cpu in set.iter() {
                if let Some(cpu) = self.cpus.get_mut(&cpu).filter(|cpu| placed.insert(cpu.id)) {
                    cpu.node = Some(node);
                }
            }
        }
        placed
    }

    /// Takes the lists of cpus of the nodes, which are resolved when the whole machine is known.
    pub(crate) fn take_claims(&mut self) -> Claims {
        Claims(std::mem::take(&mut self.claims))
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

impl Claims {
    /// Lets a node keep the cpus of an earlier one if both list the same cpus and, as far as known,
    /// their distance to each other is the local one: they are parts of one node (`numa=fake`). Any
    /// other cpu on two nodes is a finding.
    pub(crate) fn settle(&self, machine: &mut Machine, findings: &mut Findings) {
        let mut parts = NodeSet::new();
        for (&node, (cpus, place)) in &self.0 {
            let is_whole = |first: &(&NodeId, &(CpuSet, String))| {
                let (there, back) =
                    (machine.distance(*first.0, node), machine.distance(node, *first.0));
                let is_local = [there, back].iter().flatten().all(|&far| far == LOCAL_DISTANCE);
                first.1.0 == *cpus && is_local
            };
            let first = self.0.range(..node).find(is_whole).map(|(first, _)| *first);
            if let Some(first) = first.filter(|_| !cpus.is_empty()) {
                parts.extend([first, node]);
                if let Some(index) = machine.node_index(node) {
                    machine.nodes[index].cpus = cpus.clone();
                }
                continue;
            }
            let elsewhere = |id: &CpuId| machine.cpu(*id).is_some_and(|cpu| cpu.node != Some(node));
            // Only the first few are examined: a damaged text can name all cpus on all nodes.
            if let Some(id) = cpus.iter().take(MOST_LOOKS).find(elsewhere) {
                let first = machine.cpu(id).and_then(|cpu| cpu.node).unwrap_or_default();
                let message = format!("cpu {id} is already on node {first}, where it stays");
                findings.warning("cpu-twice", place, message);
            }
        }
        if !parts.is_empty() {
            let message = "list the same cpus, which are local to each of them: the kernel option \
                           numa=fake creates such nodes";
            findings.note("nodes-share-cpus", format!("nodes {parts}"), message);
        }
    }
}
