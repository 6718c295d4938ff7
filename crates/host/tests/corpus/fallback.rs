//! Runs the frame allocator on the machines of the corpus: nodes run out in exactly the order that
//! the topology gives, which never goes from a farther node to a nearer one.

use numalab_frames::{
    CpuFences, CpuIndex, Frame, Frames, Machine as FrameMachine, MemoryRange, NodeIndex,
    RangeState, Request, Word,
};
use numalab_topology::Machine;

/// Frames of each node.
const FRAMES: u64 = 3;

/// Returns the errors in the order in which a machine's nodes run out.
pub fn faults(tree: &str, machine: &Machine) -> Vec<String> {
    let orders: Vec<Vec<NodeIndex>> = machine
        .fallback_orders()
        .iter()
        .map(|fallback| fallback.order.iter().map(|&id| dense(machine, id)).collect())
        .collect();
    let mut faults = Vec::new();
    if orders.len() < machine.nodes.len() || orders.concat().is_empty() {
        return faults; // A node is offline and has no order, or none has memory.
    }
    for (from, order) in orders.iter().enumerate() {
        let came = nodes_as_they_exhaust(&orders, from);
        let expected: Vec<_> = order.iter().flat_map(|&node| [node; 3]).collect();
        if came != expected {
            faults
                .push(format!("{tree}: from node {from} frames came from {came:?}, not {order:?}"));
        }
        // Linux adds one to the cost of a node with a smaller id than the requesting one.
        let cost = |node: &NodeIndex| {
            let distance = machine.distances.get(from, usize::from(node.0));
            distance.map(|d| u16::from(d) + u16::from(usize::from(node.0) < from))
        };
        let rest: Vec<_> =
            order.iter().filter(|node| usize::from(node.0) != from).map(cost).collect();
        if rest.iter().all(Option::is_some) && !rest.is_sorted() {
            faults.push(format!("{tree}: from node {from} the order {order:?} is not by distance"));
        }
    }
    faults
}

fn dense(machine: &Machine, id: numalab_topology::NodeId) -> NodeIndex {
    let at = machine.nodes.iter().position(|node| node.id == id).unwrap();
    NodeIndex(u16::try_from(at).unwrap())
}

/// Allocates all frames from one node's point of view, and returns the nodes they came from.
fn nodes_as_they_exhaust(orders: &[Vec<NodeIndex>], from: usize) -> Vec<NodeIndex> {
    let range = |node: usize| MemoryRange {
        start: Frame::new(node as u64 * FRAMES),
        frames: FRAMES,
        node: NodeIndex(u16::try_from(node).unwrap()),
        state: RangeState::Online,
    };
    let has_memory = |node: &usize| orders.iter().flatten().any(|o| usize::from(o.0) == *node);
    let ranges: Vec<_> = (0..orders.len()).filter(has_memory).map(range).collect();
    // The allocator requires every node in every order, its own first; nodes without memory make no
    // difference.
    let whole = |(node, order): (usize, &Vec<NodeIndex>)| -> Vec<NodeIndex> {
        let own = NodeIndex(u16::try_from(node).unwrap());
        let rest = (0..orders.len()).filter(|n| !has_memory(n));
        let rest = rest.map(|n| NodeIndex(u16::try_from(n).unwrap())).filter(|&n| n != own);
        let nearest = order.iter().copied().filter(|&n| n != own);
        std::iter::once(own).chain(nearest).chain(rest).collect()
    };
    let orders: Vec<_> = orders.iter().enumerate().map(whole).collect();
    let fallback: Vec<&[NodeIndex]> = orders.iter().map(Vec::as_slice).collect();
    let machine = FrameMachine {
        ranges: &ranges,
        zone_limits: &[u64::MAX],
        cpus: &[NodeIndex(u16::try_from(from).unwrap())],
        fallback: &fallback,
    };
    let mut metadata: Vec<Word> =
        (0..machine.metadata_words().unwrap()).map(|_| Word::new(0)).collect();
    let frames = Frames::new(machine, &mut metadata, CpuFences).unwrap();
    let take = || frames.alloc(CpuIndex(0), &Request::FRAME).ok();
    std::iter::from_fn(take)
        .map(|frame| NodeIndex(u16::try_from(frame.number() / FRAMES).unwrap()))
        .collect()
}
