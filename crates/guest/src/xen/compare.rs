//! Compares the machine that the hypervisor exports with the one that it was given.

use numalab_topology::Machine;

use numalab_guest_agent::xen::NodeRange;
use numalab_guest_agent::xen::text::XenInfo;

use super::memory_map::node_ranges;

/// The largest part of a node that the hypervisor and firmware reserve, in MiB.
const KEPT_MIB: u64 = 64;

/// Returns a description of the differences between `xl info -n` and the machine; `None` if there
/// are none.
pub fn difference(info: &XenInfo, machine: &Machine) -> Option<String> {
    let mut differences = Vec::new();
    if info.nodes.len() != machine.nodes.len() {
        differences.push(format!("{} nodes instead of {}", info.nodes.len(), machine.nodes.len()));
    }
    for cpu in &machine.cpus {
        let expected = cpu.node.map(|node| node.0);
        let found = info.cpu_nodes.get(&cpu.id.0).copied();
        if found != expected {
            let node = |node: Option<u32>| node.map_or("none".to_owned(), |node| node.to_string());
            let (found, expected) = (node(found), node(expected));
            differences.push(format!("cpu {} on node {found} instead of {expected}", cpu.id));
        }
    }
    let ranges = node_ranges(machine);
    for (index, node) in machine.nodes.iter().enumerate() {
        let Some((size_mib, distances)) = info.nodes.get(&node.id.0) else { continue };
        let expected_mib = spanned_bytes(&ranges, node.id.0) >> 20;
        if !(expected_mib.saturating_sub(KEPT_MIB)..=expected_mib).contains(size_mib) {
            let place = format!("node {}", node.id);
            differences.push(format!("{place} of {size_mib} MiB instead of {expected_mib}"));
        }
        let expected = (0..machine.nodes.len()).map(|to| machine.distances.get(index, to));
        let expected: Vec<u8> = expected.flatten().collect();
        if *distances != expected {
            let place = format!("node {}", node.id);
            differences.push(format!("{place} at {distances:?} instead of {expected:?}"));
        }
    }
    (!differences.is_empty()).then(|| differences.join(", "))
}

/// Returns the size from a node's first address to its last: Xen includes the hole for devices.
fn spanned_bytes(ranges: &[NodeRange], node: u32) -> u64 {
    let own = ranges.iter().filter(|range| range.node == node);
    let start = own.clone().map(|range| range.start).min().unwrap_or(0);
    own.map(|range| range.end).max().unwrap_or(0) - start
}

#[cfg(test)]
mod tests {
    use super::*;
    use numalab_topology::{Cpu, CpuId, Distances, Node, NodeId};
    use std::collections::BTreeMap;

    fn machine() -> Machine {
        let node = |id: u32| Node { id: NodeId(id), memory_bytes: 1 << 30, ..Node::default() };
        let cpu = |id: u32| Cpu { id: CpuId(id), node: Some(NodeId(id)), ..Cpu::default() };
        Machine {
            nodes: vec![node(0), node(1)],
            cpus: vec![cpu(0), cpu(1)],
            distances: Distances::uniform(2, 20),
            ..Machine::default()
        }
    }

    fn info() -> XenInfo {
        XenInfo {
            cpu_nodes: BTreeMap::from([(0, 0), (1, 1)]),
            nodes: BTreeMap::from([(0, (1024, vec![10, 20])), (1, (1023, vec![20, 10]))]),
            ..XenInfo::default()
        }
    }

    #[test]
    fn the_same_machine_has_no_difference() {
        assert_eq!(difference(&info(), &machine()), None);
    }

    #[test]
    fn a_node_around_the_hole_for_devices_spans_it() {
        let mut machine = machine();
        machine.nodes.iter_mut().for_each(|node| node.memory_bytes = 3 << 29);
        let mut info = info();
        // 512 MiB of the second node are below the hole, which is from 2 to 4 GiB, and the rest
        // above.
        info.nodes = BTreeMap::from([(0, (1536, vec![10, 20])), (1, (3584, vec![20, 10]))]);
        assert_eq!(difference(&info, &machine), None);
    }

    #[test]
    fn every_difference_is_reported_with_the_expected_value() {
        let mut other = info();
        other.cpu_nodes.insert(1, 0);
        other.nodes.insert(1, (512, vec![21, 10]));
        let text = difference(&other, &machine()).unwrap();
        assert_eq!(
            text,
            "cpu 1 on node 0 instead of 1, node 1 of 512 MiB instead of 1024, \
             node 1 at [21, 10] instead of [20, 10]"
        );
        other.nodes.remove(&1);
        assert!(difference(&other, &machine()).unwrap().starts_with("1 nodes instead of 2"));
    }
}
