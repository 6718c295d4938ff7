//! The part of a machine that a process may use.

use alloc::vec::Vec;

use crate::cpu::Cpu;
use crate::id_set::{CpuSet, NodeSet};
use crate::machine::Machine;
use crate::node::Node;

impl Machine {
    /// Returns the machine without the cpus and the memory that the calling process may not use,
    /// and without nodes that have nothing left; the whole machine if the restriction is unknown.
    /// Ids are unchanged.
    pub fn usable_part(&self) -> Self {
        let (cpus, memory) = (self.usable_cpus(), self.usable_memory_nodes());
        let node = |node: &Node| Node {
            cpus: node.cpus.intersection(&cpus),
            memory_bytes: if memory.contains(node.id) { node.memory_bytes } else { 0 },
            ..node.clone()
        };
        let is_of_use =
            |node: &Node| node.online && (!node.cpus.is_empty() || node.memory_bytes > 0);
        let nodes: Vec<Node> = self.nodes.iter().map(node).filter(is_of_use).collect();
        let kept: Vec<usize> = nodes.iter().filter_map(|node| self.node_index(node.id)).collect();
        let is_there = |id| nodes.iter().any(|node| node.id == id);
        let left = |set: &CpuSet| set.intersection(&cpus);
        let mut caches = self.caches.clone();
        caches.iter_mut().for_each(|cache| cache.cpus = left(&cache.cpus));
        caches.retain(|cache| !cache.cpus.is_empty());
        let mut access = self.access.clone();
        access.retain(|access| is_there(access.initiator) && is_there(access.target));
        let is_usable = |cpu: &&Cpu| cpus.contains(cpu.id);
        Self {
            cpus: self.cpus.iter().filter(is_usable).cloned().collect(),
            distances: self.distances.among(&kept),
            caches,
            access,
            nodes,
            ..self.clone()
        }
    }

    /// Returns the nodes with memory and usable cpus from which the calling process may not take
    /// memory.
    pub fn forbidden_local_nodes(&self) -> NodeSet {
        let cpus = self.usable_cpus();
        let has_usable = |node: &&Node| !node.cpus.intersection(&cpus).is_empty();
        let nodes: NodeSet = self.nodes.iter().filter(has_usable).map(|node| node.id).collect();
        let local = nodes.intersection(&self.memory_nodes());
        local.difference(&self.usable_memory_nodes())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use crate::{Allowed, CpuId, NodeId, UniformMachine};
    use crate::{EmulatedNodes, EmulationSpec};

    use super::*;

    fn machine() -> Machine {
        let base = UniformMachine::of_packages(3, 6, 3 << 30);
        let spec = EmulationSpec { nodes: EmulatedNodes::Equal(3), distances: None };
        spec.emulate(&base.build().unwrap()).unwrap()
    }

    #[test]
    fn only_allowed_cpus_and_memory_are_left_with_their_ids() {
        let allowed = |cpus: &str, nodes: &str| {
            let (cpus, memory_nodes) = (cpus.parse().unwrap(), nodes.parse().unwrap());
            let allowed = Allowed { cpus, memory_nodes, ..Allowed::default() };
            Machine { allowed: Some(allowed), ..machine() }.usable_part()
        };
        let part = allowed("3-5", "1-2");
        assert_eq!(
            part.nodes.iter().map(|node| node.id).collect::<Vec<_>>(),
            [NodeId(1), NodeId(2)]
        );
        assert_eq!(part.cpus.iter().map(|cpu| cpu.id.0).collect::<Vec<_>>(), [3, 4, 5]);
        assert_eq!(part.distance(NodeId(1), NodeId(2)), machine().distance(NodeId(1), NodeId(2)));
        assert_eq!(part.node(NodeId(1)).unwrap().cpus.iter().collect::<Vec<_>>(), [CpuId(3)]);
        assert!(part.caches.iter().all(|cache| !cache.cpus.contains(CpuId(2))));
        let far = allowed("0", "2");
        let shape: Vec<_> = far.nodes.iter().map(|n| (n.cpus.len(), n.memory_bytes > 0)).collect();
        assert_eq!(shape, vec![(1, false), (0, true)]);
    }

    #[test]
    fn local_memory_that_is_not_allowed_is_that_of_nodes_with_usable_cpus() {
        let forbidden = |cpus: &str, nodes: &str| {
            let (cpus, memory_nodes) = (cpus.parse().unwrap(), nodes.parse().unwrap());
            let allowed = Allowed { cpus, memory_nodes, ..Allowed::default() };
            Machine { allowed: Some(allowed), ..machine() }.forbidden_local_nodes()
        };
        assert_eq!(forbidden("0-3", "1-2"), NodeSet::from_iter([NodeId(0)]));
        assert_eq!(forbidden("4-5", "2"), NodeSet::new());
        assert_eq!(machine().forbidden_local_nodes(), NodeSet::new());
    }

    #[test]
    fn a_machine_without_restrictions_is_usable_as_a_whole() {
        assert_eq!(machine().usable_part(), machine());
    }
}
