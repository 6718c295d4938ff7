//! Bandwidth by kernel, visiting order and number of cpus.

use std::collections::{BTreeMap, BTreeSet};

use numalab_record::{AccessPattern, BandwidthCell, CellId, Metric, StreamKernel};
use numalab_topology::{Machine, NodeId, weights_by_bandwidth};

use super::cell::{CellSummary, Figure};
use super::matrix::{Axis, Matrix, Value, node_of};

#[derive(Clone, Debug, PartialEq)]
pub struct BandwidthRow<'a> {
    pub id: &'a CellId,
    pub cell: &'a BandwidthCell,
    /// The bandwidth of all workers together, in GB/s.
    pub figure: Figure,
    /// True if every worker used the memory of its own node.
    pub is_local: bool,
    /// The names of the instruction sets that its workers streamed in.
    pub isas: BTreeSet<&'a str>,
}

/// All bandwidth figures of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bandwidths<'a> {
    /// The cells in the plan's order.
    pub rows: Vec<BandwidthRow<'a>>,
    /// Sequential-read bandwidth of one node's cpus (rows) from one node's memory (columns).
    pub by_node: Option<Matrix>,
    /// Interleaving weights in proportion to the nodes' bandwidth; empty if all are equal, or if a
    /// node with memory was not measured.
    pub weights: Vec<MeasuredWeight>,
}

/// A node's weight for weighted interleaving, from measured bandwidth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredWeight {
    /// The node that holds the memory.
    pub node: NodeId,
    /// The highest read bandwidth that any node's cpus reached from the node, in GB/s.
    pub gb_per_s: f64,
    /// Pages allocated from this node per round.
    pub weight: u64,
}

impl<'a> Bandwidths<'a> {
    /// Collects the bandwidth figures of a run.
    pub fn of(cells: &[CellSummary<'a>], machine: &Machine) -> Self {
        let rows = cells
            .iter()
            .filter_map(|summary| {
                let cell = summary.bandwidth()?;
                Some(BandwidthRow {
                    id: &summary.cell.id,
                    cell,
                    figure: summary.figure(Metric::Bandwidth)?.clone(),
                    is_local: is_local(summary, cell, machine),
                    isas: isas(summary, cell),
                })
            })
            .collect();
        let by_node = by_node(cells, machine, StreamKernel::Read);
        let weights = weights(&by_node, machine);
        Self { rows, by_node: (!by_node.is_trivial()).then_some(by_node), weights }
    }

    /// Returns the largest number of workers of any local cell.
    pub fn most_workers(&self) -> usize {
        let local = self.rows.iter().filter(|row| row.is_local);
        local.map(|row| row.cell.workers.len()).max().unwrap_or(0)
    }

    /// Returns one local cell per kernel and order with exactly `workers` workers, in the usual
    /// order of kernels.
    pub fn local_with(&self, workers: usize) -> Vec<&BandwidthRow<'a>> {
        let mut found: BTreeMap<(AccessPattern, StreamKernel), &BandwidthRow<'a>> = BTreeMap::new();
        for row in &self.rows {
            if row.is_local && row.cell.workers.len() == workers {
                let key = (row.cell.pattern, row.cell.kernel);
                found.entry(key).or_insert(row);
            }
        }
        let mut rows: Vec<_> = found.into_values().collect();
        let sequential = |row: &&BandwidthRow<'_>| row.cell.pattern == AccessPattern::Sequential;
        rows.sort_by_key(|row| !sequential(row));
        rows
    }
}

fn weights(by_node: &Matrix, machine: &Machine) -> Vec<MeasuredWeight> {
    let best = |node: NodeId| {
        let entries = by_node.rows.iter().filter_map(|&row| by_node.get(row, node.0));
        entries.map(|entry| entry.value).max_by(f64::total_cmp)
    };
    let measured = machine.memory_nodes().iter().map(|node| Some((node, best(node)?))).collect();
    let measured: Vec<(NodeId, f64)> = Option::unwrap_or_default(measured);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let whole = |gb_per_s: f64| (gb_per_s * 1000.0).clamp(0.0, 1e9) as u64;
    let in_mb: Vec<(NodeId, u64)> = measured.iter().map(|&(node, gb)| (node, whole(gb))).collect();
    let weights = weights_by_bandwidth(&in_mb).unwrap_or_default();
    if weights.iter().all(|(_, weight)| *weight == weights[0].1) {
        return Vec::new();
    }
    let joined = weights.into_iter().zip(measured);
    joined
        .map(|((node, weight), (_, gb_per_s))| MeasuredWeight { node, gb_per_s, weight })
        .collect()
}

/// Returns the instruction sets that trials chose, or the cell's own.
fn isas<'a>(summary: &CellSummary<'a>, cell: &'a BandwidthCell) -> BTreeSet<&'a str> {
    let chosen = summary.placements.iter().filter_map(|placement| placement.isa.as_ref());
    let chosen: BTreeSet<&str> = chosen.map(|isa| isa.0.as_str()).collect();
    if chosen.is_empty() { BTreeSet::from([cell.isa.0.as_str()]) } else { chosen }
}

fn is_local(summary: &CellSummary<'_>, cell: &BandwidthCell, machine: &Machine) -> bool {
    cell.workers
        .iter()
        .all(|worker| node_of(summary, machine, worker.cpu).is_none_or(|node| node == worker.node))
}

/// Returns the cpus' node and the memory's node, if each is a single node.
fn node_pair(
    summary: &CellSummary<'_>,
    cell: &BandwidthCell,
    machine: &Machine,
) -> Option<(NodeId, NodeId)> {
    let mut pairs = BTreeSet::new();
    for worker in &cell.workers {
        pairs.insert((node_of(summary, machine, worker.cpu)?, worker.node));
    }
    pairs.pop_first().filter(|_| pairs.is_empty())
}

/// Returns the in-order bandwidth from one node's memory, or to it, by the most cpus of one node.
pub(super) fn by_node(
    cells: &[CellSummary<'_>],
    machine: &Machine,
    kernel: StreamKernel,
) -> Matrix {
    let mut best: BTreeMap<(NodeId, NodeId), (usize, Value)> = BTreeMap::new();
    for summary in cells {
        let Some(cell) = summary.bandwidth() else {
            continue;
        };
        let sequential = cell.pattern == AccessPattern::Sequential;
        if cell.kernel != kernel || !sequential {
            continue;
        }
        let Some((from, to)) = node_pair(summary, cell, machine) else {
            continue;
        };
        let Some(value) = Value::of(summary, Metric::Bandwidth, from.0, to.0) else {
            continue;
        };
        let workers = cell.workers.len();
        match best.get(&(from, to)) {
            Some((most, _)) if *most >= workers => {}
            _ => {
                best.insert((from, to), (workers, value));
            }
        }
    }
    let values = best.into_values().map(|(_, value)| value).collect();
    Matrix::of(Metric::Bandwidth.unit(), Axis::Node, Axis::Node, values)
}
