//! Which machine addresses are each node's on QEMU's q35 (`hw/i386/pc_q35.c`).

use numalab_topology::Machine;
use serde::{Deserialize, Serialize};

/// A range of machine addresses on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRange {
    /// The node.
    pub node: u32,
    /// Its first address.
    pub start: u64,
    /// The address behind its last.
    pub end: u64,
}

/// More memory than this leaves room for devices below 4 GiB.
const WITHOUT_HOLE_BYTES: u64 = 0xb000_0000;
/// Then this much lies below.
const LOW_BYTES: u64 = 0x8000_0000;
const ABOVE: u64 = 1 << 32;

/// The address ranges of the machine's nodes when QEMU lays them out, in address order.
#[must_use]
pub fn node_ranges(machine: &Machine) -> Vec<NodeRange> {
    let total = machine.memory_bytes();
    let low = if total >= WITHOUT_HOLE_BYTES { LOW_BYTES } else { total };
    let mut ranges = Vec::new();
    let mut offset = 0;
    for node in &machine.nodes {
        let end = offset + node.memory_bytes;
        let below = (offset.min(low), end.min(low));
        let above = (offset.max(low) - low + ABOVE, end.max(low) - low + ABOVE);
        for (start, end) in [below, above] {
            if start < end {
                ranges.push(NodeRange { node: node.id.0, start, end });
            }
        }
        offset = end;
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use numalab_topology::{Node, NodeId};

    fn ranges_of(gib: &[u64]) -> Vec<(u32, u64, u64)> {
        let node = |(id, gib): (usize, &u64)| Node {
            id: NodeId(u32::try_from(id).unwrap()),
            memory_bytes: gib << 30,
            ..Node::default()
        };
        let nodes = gib.iter().enumerate().map(node).collect();
        let machine = Machine { nodes, ..Machine::default() };
        let ranges = node_ranges(&machine);
        ranges.iter().map(|range| (range.node, range.start, range.end)).collect()
    }

    #[test]
    fn the_ranges_are_those_that_a_hypervisor_read_from_the_srat() {
        // SRAT lines of Xen on QEMU: 4 nodes of 1 GiB, 4 of 2 GiB.
        let expected = [
            (0, 0, 0x4000_0000),
            (1, 0x4000_0000, 0x8000_0000),
            (2, 0x1_0000_0000, 0x1_4000_0000),
            (3, 0x1_4000_0000, 0x1_8000_0000),
        ];
        assert_eq!(ranges_of(&[1, 1, 1, 1]), expected);
        let expected = [
            (0, 0, 0x8000_0000),
            (1, 0x1_0000_0000, 0x1_8000_0000),
            (2, 0x1_8000_0000, 0x2_0000_0000),
            (3, 0x2_0000_0000, 0x2_8000_0000),
        ];
        assert_eq!(ranges_of(&[2, 2, 2, 2]), expected);
    }

    #[test]
    fn a_node_across_the_hole_has_two_ranges_and_an_empty_one_none() {
        assert_eq!(ranges_of(&[2]), [(0, 0, 0x8000_0000)]);
        let expected = [(0, 0, 0x8000_0000), (0, 0x1_0000_0000, 0x1_4000_0000)];
        assert_eq!(ranges_of(&[3, 0])[..], expected);
    }
}
