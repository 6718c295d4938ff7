//! The room on nodes that a remedy needs.

use numalab_record::explore::{BytesByNode, RoomByNode};
use numalab_topology::{NodeId, NodeSet};

use super::Obstacle;

/// Checks that `bytes` more fit on a node; a node of unknown size passes.
pub(super) fn has_room(room: &RoomByNode, node: NodeId, bytes: u64) -> Result<(), Obstacle> {
    let Some(of) = room.get(&node) else { return Ok(()) };
    let nodes = NodeSet::from_iter([node]);
    if of.total_bytes == 0 {
        return Err(Obstacle::NoMemory { nodes });
    }
    let left_bytes = of.left_bytes();
    match bytes <= left_bytes {
        true => Ok(()),
        false => Err(Obstacle::NoRoom { nodes, needed_bytes: bytes, left_bytes }),
    }
}

/// Returns the nodes, at least two, over which `bytes` can be interleaved. `now` gives the bytes
/// that each node gets back when the memory is allocated again.
pub(super) fn spread_over(
    room: &RoomByNode,
    nodes: &NodeSet,
    bytes: u64,
    now: &BytesByNode,
) -> Result<NodeSet, Obstacle> {
    let has_memory = |node: &NodeId| room.get(node).is_none_or(|of| of.total_bytes > 0);
    let with_memory: NodeSet = nodes.iter().filter(has_memory).collect();
    if with_memory.is_empty() {
        return Err(Obstacle::NoMemory { nodes: nodes.clone() });
    }
    let freed = |node: NodeId| now.get(&node).copied().unwrap_or(0);
    let left = |node: NodeId| {
        room.get(&node).map_or(u64::MAX, |of| of.left_bytes().saturating_add(freed(node)))
    };
    let mut over = with_memory.clone();
    // A node that is too small for an equal part leaves more for the others.
    while over.len() > 1 {
        let each = bytes.div_ceil(over.len() as u64);
        let fitting: NodeSet = over.iter().filter(|node| left(*node) >= each).collect();
        if fitting.len() == over.len() {
            return Ok(over);
        }
        over = fitting;
    }
    let left_bytes = with_memory.iter().map(left).fold(0, u64::saturating_add);
    Err(Obstacle::NoRoom { nodes: with_memory, needed_bytes: bytes, left_bytes })
}

#[cfg(test)]
mod tests {
    use numalab_record::explore::NodeRoom;

    use super::*;

    const GIB: u64 = 1 << 30;

    fn room(of: &[(u32, u64, u64)]) -> RoomByNode {
        let node = |&(node, total, available): &(u32, u64, u64)| {
            let (total_bytes, available_bytes) = (total * GIB, available * GIB);
            (NodeId(node), NodeRoom { total_bytes, available_bytes })
        };
        of.iter().map(node).collect()
    }

    fn nodes(list: &str) -> NodeSet {
        list.parse().unwrap()
    }

    #[test]
    fn a_node_keeps_a_part_free_and_one_that_is_unknown_refuses_nothing() {
        let room = room(&[(0, 100, 10), (1, 0, 0)]);
        assert_eq!(has_room(&room, NodeId(0), 6 * GIB), Ok(()));
        let (needed_bytes, left_bytes) = (7 * GIB, 6 * GIB);
        let full = Obstacle::NoRoom { nodes: nodes("0"), needed_bytes, left_bytes };
        assert_eq!(has_room(&room, NodeId(0), 7 * GIB), Err(full));
        let none = Obstacle::NoMemory { nodes: nodes("1") };
        assert_eq!(has_room(&room, NodeId(1), 0), Err(none));
        assert_eq!(has_room(&room, NodeId(9), u64::MAX), Ok(()));
    }

    #[test]
    fn memory_is_spread_over_the_nodes_that_can_take_an_equal_part() {
        let room = room(&[(0, 100, 4), (1, 100, 54), (2, 100, 54), (3, 0, 0)]);
        let over = |bytes, now: &[(u32, u64)]| {
            let now = now.iter().map(|(node, of)| (NodeId(*node), of * GIB)).collect();
            spread_over(&room, &nodes("0-3"), bytes * GIB, &now)
        };
        assert_eq!(over(90, &[]), Ok(nodes("1-2")), "node 0 is full");
        assert_eq!(over(90, &[(0, 90)]), Ok(nodes("0-2")), "what is there now leaves it");
        let (needed_bytes, left_bytes) = (300 * GIB, 100 * GIB);
        let full = Obstacle::NoRoom { nodes: nodes("0-2"), needed_bytes, left_bytes };
        assert_eq!(over(300, &[]), Err(full));
        let none = spread_over(&room, &nodes("3"), 1, &BytesByNode::new());
        assert_eq!(none, Err(Obstacle::NoMemory { nodes: nodes("3") }));
    }
}
