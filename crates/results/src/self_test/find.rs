//! A self-test of a machine's nodes, and its judgement.

use numalab_record::self_test::{CheckFound, CheckOutcome, NodeLatency};
use numalab_topology::{Machine, NodeId};

use crate::run::Matrix;

/// Largest share of pages in percent that may move without balancing, or stay with it.
const STAY_PERCENT: f64 = 5.0;
const FOLLOW_PERCENT: f64 = 50.0;
/// Relative amount by which memory at a larger distance may be faster.
const ORDER_MARGIN: f64 = 0.05;

/// Judges a check's result on this machine.
pub fn judge(found: &CheckFound, machine: &Machine) -> CheckOutcome {
    let is_right = match found {
        CheckFound::Pins { right, wrong } => !right.is_empty() && wrong.is_empty(),
        CheckFound::Pages { nodes } => nodes.iter().all(|node| node.on_node == node.pages),
        CheckFound::Claim { pages, refused, .. } => refused == pages,
        CheckFound::Balancing { off_percent, on_percent, .. } => {
            *off_percent <= STAY_PERCENT && *on_percent >= FOLLOW_PERCENT
        }
        CheckFound::Matrix { pairs } => inversions(pairs).is_empty(),
        CheckFound::Guest { nodes, .. } => nodes.iter().all(|node| {
            let runs_on = node.runs_on.and_then(|cpu| machine.cpu(cpu)).and_then(|cpu| cpu.node);
            runs_on == Some(node.host) && node.there_bytes > 0 && node.elsewhere_bytes == 0
        }),
        CheckFound::Settings { settings } => {
            settings.iter().all(|setting| setting.before == setting.after)
        }
    };
    if is_right { CheckOutcome::Passed } else { CheckOutcome::Failed }
}

/// Returns the pairs of a latency matrix with the machine's distances.
pub fn pairs(by_node: &Matrix, machine: &Machine) -> Vec<NodeLatency> {
    let mut pairs = Vec::new();
    for &from in &by_node.rows {
        for &to in &by_node.columns {
            let Some(entry) = by_node.get(from, to) else { continue };
            let (from, to) = (NodeId(from), NodeId(to));
            let distance = machine.cost_distance(from, to);
            pairs.push(NodeLatency { from, to, latency_ns: entry.value, distance });
        }
    }
    pairs
}

/// Returns the pairs of memories, seen from one node's cpus, of which the one closer by distance is
/// slower.
pub fn inversions(pairs: &[NodeLatency]) -> Vec<(NodeLatency, NodeLatency)> {
    let is_inverted = |near: &NodeLatency, far: &NodeLatency| {
        near.from == far.from
            && matches!((near.distance, far.distance), (Some(near), Some(far)) if near < far)
            && near.latency_ns * (1.0 - ORDER_MARGIN) > far.latency_ns
    };
    let with = |near: &NodeLatency| {
        let near = *near;
        pairs.iter().filter(move |far| is_inverted(&near, far)).map(move |far| (near, *far))
    };
    pairs.iter().flat_map(with).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use numalab_record::self_test::{GuestNode, NodePages};
    use numalab_topology::{Cpu, CpuId};

    fn judged(found: CheckFound) -> CheckOutcome {
        let cpu = |id| Cpu { id: CpuId(id), node: Some(NodeId(id / 2)), ..Cpu::default() };
        judge(&found, &Machine { cpus: (0..4).map(cpu).collect(), ..Machine::default() })
    }

    fn pair(to: u32, distance: u8, latency_ns: f64) -> NodeLatency {
        NodeLatency { from: NodeId(0), to: NodeId(to), latency_ns, distance: Some(distance) }
    }

    #[test]
    fn nearer_memory_that_is_slower_fails_unless_it_is_within_the_margin() {
        let matrix = |far_ns| CheckFound::Matrix {
            pairs: vec![pair(0, 10, 100.0), pair(1, 12, 130.0), pair(2, 20, far_ns)],
        };
        assert_eq!(judged(matrix(125.0)), CheckOutcome::Passed);
        assert_eq!(judged(matrix(120.0)), CheckOutcome::Failed);
        let CheckFound::Matrix { pairs } = matrix(120.0) else { unreachable!() };
        assert_eq!(inversions(&pairs), [(pairs[1], pairs[2])]);
    }

    #[test]
    fn balancing_must_move_pages_that_stay_without_it() {
        let found = |off_percent, on_percent| CheckFound::Balancing {
            from: NodeId(0),
            to: NodeId(1),
            off_percent,
            on_percent,
            begin_ns: 200.0,
            end_ns: 100.0,
        };
        assert_eq!(judged(found(0.0, 98.0)), CheckOutcome::Passed);
        assert_eq!(judged(found(0.0, 3.0)), CheckOutcome::Failed);
        assert_eq!(judged(found(90.0, 98.0)), CheckOutcome::Failed);
    }

    #[test]
    fn one_page_elsewhere_or_one_claim_believed_fails() {
        let pages = |on_node| {
            let node = NodePages { node: NodeId(1), page_bytes: 4096, pages: 8, on_node };
            CheckFound::Pages { nodes: vec![NodePages { on_node: 8, ..node }, node] }
        };
        assert_eq!(judged(pages(8)), CheckOutcome::Passed);
        assert_eq!(judged(pages(7)), CheckOutcome::Failed);
        let (node, claimed) = (NodeId(0), NodeId(1));
        let claim = |refused| CheckFound::Claim { node, claimed, pages: 8, refused };
        assert_eq!(judged(claim(8)), CheckOutcome::Passed);
        assert_eq!(judged(claim(7)), CheckOutcome::Failed);
    }

    #[test]
    fn a_guest_node_needs_its_cpu_and_all_of_its_memory_on_one_node() {
        let guest = |cpu: u32, elsewhere_bytes| CheckFound::Guest {
            accelerator: "kvm".to_owned(),
            nodes: vec![GuestNode {
                host: NodeId(1),
                runs_on: Some(CpuId(cpu)),
                there_bytes: 1 << 28,
                elsewhere_bytes,
            }],
        };
        assert_eq!(judged(guest(3, 0)), CheckOutcome::Passed);
        assert_eq!(judged(guest(1, 0)), CheckOutcome::Failed);
        assert_eq!(judged(guest(3, 4096)), CheckOutcome::Failed);
    }
}
