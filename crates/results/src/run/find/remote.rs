//! Cost of remote memory.

use numalab_stats::Sample;
use numalab_topology::{Machine, NodeId};
use serde::Serialize;

use super::matrix::{LatencyMatrix, Matrix};

/// The outcome of comparing remote with local memory.
#[derive(Clone, Debug, PartialEq)]
pub enum Remote {
    /// The machine has a single node with memory, so nothing is remote.
    OneNode,
    /// The machine has several nodes, but no matrix holds both local and remote figures.
    NotMeasured,
    /// Local and remote latencies.
    Measured(RemoteCost),
}

impl Remote {
    /// Returns all measured pairs of different nodes.
    pub fn pairs(&self) -> &[RemotePair] {
        match self {
            Self::Measured(cost) => &cost.pairs,
            Self::OneNode | Self::NotMeasured => &[],
        }
    }
}

/// Local latency, and the remote latencies compared with it.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteCost {
    /// The median over the nodes of their local latency, in nanoseconds.
    pub local_ns: f64,
    /// All measured pairs of different nodes, lowest ratio first; never empty.
    pub pairs: Vec<RemotePair>,
}

impl RemoteCost {
    /// Returns the pairs with the smallest and the largest ratio.
    pub fn extremes(&self) -> Option<(&RemotePair, &RemotePair)> {
        self.pairs.first().zip(self.pairs.last())
    }
}

/// Latency from the cpus of one node to the memory of another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RemotePair {
    /// The cpus' node.
    pub from: NodeId,
    /// The memory's node.
    pub to: NodeId,
    /// The latency in nanoseconds.
    pub latency_ns: f64,
    /// The latency divided by the local latency of `from`.
    pub ratio: f64,
    /// The firmware's distance, if it gives one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance: Option<u8>,
}

/// Compares remote with local latency, in the serial matrix if there is one.
pub fn remote(matrices: &[LatencyMatrix], machine: &Machine) -> Remote {
    if let Some(cost) = matrices.first().and_then(|found| cost(&found.by_node, machine)) {
        return Remote::Measured(cost);
    }
    if machine.memory_nodes().len() == 1 { Remote::OneNode } else { Remote::NotMeasured }
}

fn cost(matrix: &Matrix, machine: &Machine) -> Option<RemoteCost> {
    let local = |node: &u32| matrix.get(*node, *node).map(|entry| entry.value);
    let locals: Vec<f64> = matrix.rows.iter().filter_map(local).collect();
    let local_ns = Sample::new(locals).ok()?.median();
    let mut pairs = Vec::new();
    for &from in &matrix.rows {
        for &to in matrix.columns.iter().filter(|&&to| to != from) {
            let Some(entry) = matrix.get(from, to) else {
                continue;
            };
            pairs.push(RemotePair {
                from: NodeId(from),
                to: NodeId(to),
                latency_ns: entry.value,
                // Cpus of a memoryless node have no local latency; the machine's median stands in
                // for it.
                ratio: entry.value / local(&from).unwrap_or(local_ns),
                distance: machine.cost_distance(NodeId(from), NodeId(to)),
            });
        }
    }
    pairs.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    (!pairs.is_empty()).then_some(RemoteCost { local_ns, pairs })
}
