//! The last rank's memory by node, in the suite's format.

use crate::suite::memory_by_node;
use numalab_host::memory_use;
use numalab_topology::{NodeId, NodeSet};

use super::SessionPlan;

/// Returns the calling rank's memory in the format of `numastat`, each line marked with the rank.
pub(super) fn text(rank: usize, plan: &SessionPlan, nodes: &NodeSet) -> String {
    let process = std::process::id();
    let size = plan.sizes_bytes.iter().max().copied().unwrap_or(0) >> 20;
    let mut lines = vec![
        " ===================== NUMA Statistics =====================".to_owned(),
        format!(" Last Process: Rank {rank}"),
        format!(" Process ID: {process}"),
        format!(" Allocated Memory Size: {size} MB"),
        String::new(),
    ];
    match memory_use() {
        Some(used) => {
            let kinds = [
                ("Huge", &used.huge),
                ("Heap", &used.heap),
                ("Stack", &used.stack),
                ("Private", &used.private),
            ];
            let nodes: Vec<NodeId> = nodes.iter().collect();
            let table = memory_by_node(process, &kinds, &nodes);
            lines.extend(table.lines().map(|line| format!(" {line}")));
        }
        None => lines.push(" This kernel has no /proc/self/numa_maps".to_owned()),
    }
    lines.push("==========================================================".to_owned());
    lines.iter().map(|line| format!("[{rank}]{line}\n")).collect()
}
