//! Workers and their memory, and how cell names encode them.

use numalab_topology::{CpuId, CpuSet, NodeId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One worker: a cpu and the node whose memory it uses.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct WorkerPlan {
    pub cpu: CpuId,
    /// The node of its memory.
    pub node: NodeId,
}

/// Returns `cpu0/node1`.
pub(super) fn worker_name(worker: WorkerPlan) -> String {
    format!("cpu{}/node{}", worker.cpu, worker.node)
}

/// Returns `cpu0-node1` for one worker, or the cpus by node for several: `node0:0-3+node1:4-7`.
pub(super) fn team_name(workers: &[WorkerPlan]) -> String {
    if let [worker] = workers {
        return format!("cpu{}-node{}", worker.cpu, worker.node);
    }
    let mut nodes: Vec<_> = workers.iter().map(|worker| worker.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let cpus_of = |node| {
        let on_node = workers.iter().filter(|worker| worker.node == node);
        on_node.map(|worker| worker.cpu).collect::<CpuSet>()
    };
    // A comma would end the field in samples.csv.
    let part = |node| format!("node{node}:{}", cpus_of(node)).replace(',', ".");
    nodes.into_iter().map(part).collect::<Vec<_>>().join("+")
}

/// Returns `64M` if that is exact, else `1.5M` or plain bytes.
pub(super) fn size_name(bytes: u64) -> String {
    for (unit, letter) in [(1_u64 << 30, 'G'), (1 << 20, 'M'), (1 << 10, 'K')] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{}{letter}", bytes / unit);
        }
        if bytes >= unit && bytes.is_multiple_of(unit / 2) {
            return format!("{}.5{letter}", bytes / unit);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_named_exactly() {
        let names = [4096, 98_304, 1 << 20, 3 << 19, 100_000, 5 << 30].map(size_name);
        assert_eq!(names, ["4K", "96K", "1M", "1.5M", "100000", "5G"]);
    }

    #[test]
    fn a_team_is_named_by_node_without_commas() {
        let worker = |cpu, node| WorkerPlan { cpu: CpuId(cpu), node: NodeId(node) };
        let team = [worker(0, 0), worker(2, 0), worker(3, 1)];
        assert_eq!(team_name(&team), "node0:0.2+node1:3");
        assert_eq!(team_name(&team[..1]), "cpu0-node0");
    }
}
