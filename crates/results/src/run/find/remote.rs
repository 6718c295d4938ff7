//! What a remote access costs.

use numalab_stats::Sample;
use numalab_topology::{Machine, NodeId};

use super::matrix::{LatencyMatrix, Matrix};

/// What the run says of remote memory.
#[derive(Clone, Debug, PartialEq)]
pub enum Remote {
    /// The machine has one node with memory, so nothing is remote.
    OneNode,
    /// There is no matrix with local and remote figures, nor is this a machine of one node.
    NotMeasured,
    /// Local and remote latencies.
    Measured(RemoteCost),
}

/// Local and remote latency.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteCost {
    /// Median over the nodes of the latency to the own node, in nanoseconds.
    pub local_ns: f64,
    /// Every measured pair of different nodes, cheapest ratio first; never empty.
    pub pairs: Vec<RemotePair>,
}

impl RemoteCost {
    /// The pair with the smallest and the pair with the largest ratio.
    #[must_use]
    pub fn extremes(&self) -> Option<(&RemotePair, &RemotePair)> {
        self.pairs.first().zip(self.pairs.last())
    }
}

/// One remote access.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RemotePair {
    /// The node of the cpus.
    pub from: NodeId,
    /// The node of the memory.
    pub to: NodeId,
    /// The latency in nanoseconds.
    pub latency_ns: f64,
    /// The latency over that of the cpus' own node.
    pub ratio: f64,
    /// The distance that the firmware gives, if it does.
    pub distance: Option<u8>,
}

/// What `matrices` say of remote memory; the serial one if there is one.
#[must_use]
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
                // The cpus of a node without memory have nothing local: the
                // machine's usual local latency stands in.
                ratio: entry.value / local(&from).unwrap_or(local_ns),
                distance: machine.cost_distance(NodeId(from), NodeId(to)),
            });
        }
    }
    pairs.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    (!pairs.is_empty()).then_some(RemoteCost { local_ns, pairs })
}
