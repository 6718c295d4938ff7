//! The machine addresses of each node.

use numalab_guest_agent::xen::NodeRange;
use numalab_memory_model::address::q35_ranges;
use numalab_topology::Machine;

/// Returns the address ranges of the machine's nodes as QEMU's q35 lays them out, in address order;
/// empty for a machine with more memory than the layout is known for.
pub fn node_ranges(machine: &Machine) -> Vec<NodeRange> {
    let bytes: Vec<u64> = machine.nodes.iter().map(|node| node.memory_bytes).collect();
    let of_nodes = machine.nodes.iter().zip(q35_ranges(&bytes).unwrap_or_default());
    let range = |node: u32| move |(start, end)| NodeRange { node, start, end };
    of_nodes.flat_map(|(node, ranges)| ranges.into_iter().map(range(node.id.0))).collect()
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
