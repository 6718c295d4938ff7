//! Weights of nodes for interleaving in proportion to bandwidth.

use alloc::vec::Vec;

use crate::id::NodeId;
use crate::machine::Machine;

/// The largest weight that Linux accepts.
const MOST: u64 = 255;
/// The largest weight of the slowest node, so that a turn stays short.
const MOST_OF_SLOWEST: u64 = 10;
/// The largest deviation, in thousandths, of a weight from its bandwidth's ratio to the slowest.
const NEAR: u64 = 30;

/// Returns, for each node with memory in order of node, the smallest weights that distribute pages
/// in proportion to the nodes' bandwidths, so that all of them are busy for the same time. `None`
/// if fewer than two nodes have memory, or if a bandwidth is unknown.
pub fn interleave_weights(machine: &Machine) -> Option<Vec<(NodeId, u64)>> {
    let nodes = machine.memory_nodes();
    let bandwidths = nodes.iter().map(|node| Some((node, machine.best_read(node).1?)));
    weights_by_bandwidth(&bandwidths.collect::<Option<Vec<_>>>()?)
}

/// Returns the same weights for nodes with these bandwidths, in any one unit. `None` for fewer than
/// two nodes, or if one has no bandwidth.
pub fn weights_by_bandwidth(nodes: &[(NodeId, u64)]) -> Option<Vec<(NodeId, u64)>> {
    let bandwidths: Vec<u64> = nodes.iter().map(|&(_, bandwidth)| bandwidth).collect();
    if bandwidths.len() < 2 || bandwidths.contains(&0) {
        return None;
    }
    let slowest = bandwidths.iter().copied().min()?;
    let weights = |unit: u64| -> Vec<u64> {
        let weight = |mb: u64| (mb * unit + slowest / 2) / slowest;
        bandwidths.iter().map(|&mb| weight(mb).clamp(1, MOST)).collect()
    };
    let is_near = |unit: u64| {
        weights(unit)
            .iter()
            .zip(&bandwidths)
            .all(|(&weight, &mb)| (weight * slowest).abs_diff(mb * unit) * 1000 <= NEAR * mb * unit)
    };
    let fastest = bandwidths.iter().copied().max()?;
    let most = (MOST * slowest / fastest).clamp(1, MOST_OF_SLOWEST);
    let unit = (1..most).find(|&unit| is_near(unit)).unwrap_or(most);
    Some(nodes.iter().map(|&(node, _)| node).zip(weights(unit)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{AccessAttributes, AccessClass};
    use crate::cpu::Cpu;
    use crate::id::CpuId;
    use crate::node::Node;

    fn weights(bandwidths: &[Option<u64>]) -> Option<Vec<u64>> {
        let ids = || (0..).map(NodeId).zip(bandwidths);
        let node = |(id, _)| Node { id, online: true, memory_bytes: 1, ..Node::default() };
        let access = |(target, &read_bandwidth_mb_per_s)| AccessAttributes {
            target,
            class: AccessClass::Cpu,
            read_bandwidth_mb_per_s,
            ..AccessAttributes::default()
        };
        let machine = Machine {
            nodes: ids().map(node).collect(),
            access: ids().map(access).collect(),
            ..Machine::default()
        };
        let found = interleave_weights(&machine)?;
        Some(found.into_iter().map(|(_, weight)| weight).collect())
    }

    #[test]
    fn pages_are_distributed_in_proportion_to_bandwidth_with_the_smallest_weights() {
        assert_eq!(weights(&[Some(20_000), Some(10_000)]), Some([2, 1].into()));
        assert_eq!(weights(&[Some(30_000), Some(20_000)]), Some([3, 2].into()));
        assert_eq!(weights(&[Some(10_100), Some(10_000)]), Some([1, 1].into()));
        assert_eq!(weights(&[Some(204_000), Some(21_000), Some(21_000)]), Some([10, 1, 1].into()));
    }

    #[test]
    fn no_weight_is_above_the_limit_of_linux() {
        assert_eq!(weights(&[Some(1_000_000), Some(1)]), Some([255, 1].into()));
    }

    #[test]
    fn a_node_without_bandwidth_gets_no_weight() {
        assert_eq!(weights_by_bandwidth(&[(NodeId(0), 20), (NodeId(1), 0)]), None);
        assert_eq!(weights(&[Some(20_000), Some(0)]), None);
    }

    #[test]
    fn there_are_weights_only_if_every_bandwidth_is_known() {
        assert_eq!(weights(&[Some(20_000), None]), None);
        assert_eq!(weights(&[Some(20_000)]), None);
    }

    #[test]
    fn only_the_bandwidth_of_cpus_counts_not_that_of_a_device() {
        let node = |id| Node { id: NodeId(id), online: true, memory_bytes: 1, ..Node::default() };
        let cpu = Cpu { id: CpuId(0), node: Some(NodeId(0)), online: true, ..Cpu::default() };
        let access = |initiator, target, class, mb_per_s| AccessAttributes {
            initiator: NodeId(initiator),
            target: NodeId(target),
            class,
            read_bandwidth_mb_per_s: Some(mb_per_s),
            ..AccessAttributes::default()
        };
        // Node 2 has a GPU, whose link to node 1 is the fastest.
        let machine = Machine {
            nodes: [node(0), node(1), Node { memory_bytes: 0, ..node(2) }].into(),
            cpus: [cpu].into(),
            access: [
                access(2, 1, AccessClass::Any, 400_000),
                access(0, 1, AccessClass::Cpu, 100_000),
                access(0, 0, AccessClass::Any, 100_000),
            ]
            .into(),
            ..Machine::default()
        };
        let weights = interleave_weights(&machine);
        assert_eq!(weights, Some([(NodeId(0), 1), (NodeId(1), 1)].into()));
        assert_eq!(machine.best_read(NodeId(1)), (None, Some(100_000)));
    }
}
