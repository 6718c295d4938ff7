//! Measured latency and bandwidth between nodes, in the form of firmware tables (HMAT).

use std::collections::{BTreeMap, BTreeSet};

use numalab_record::{AccessPattern, Document, LatencyCell, Metric, Pages, StreamKernel, Team};
use numalab_topology::{AccessAttributes, AccessClass, Machine, NodeId};

use super::bandwidth::by_node;
use super::cell::CellSummary;
use super::matrix::{Axis, Matrix, Value, node_of};

/// The visiting order, buffer length in bytes and page size of a chase.
pub type Chase = (AccessPattern, u64, Pages);

/// Latencies and bandwidths between nodes that a run measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeAccess {
    /// One entry per measured pair of initiator and target.
    pub access: Vec<AccessAttributes>,
    /// The chase that measured the latencies.
    pub chase: Option<Chase>,
    /// The kernel that measured the write bandwidths.
    pub write: Option<StreamKernel>,
}

type Field = fn(&mut AccessAttributes) -> &mut Option<u64>;

impl NodeAccess {
    /// Takes latencies from the serial chase that covers the most nodes (the largest buffer of
    /// equals), read bandwidths from in-order reads by the most cpus of each node, and write
    /// bandwidths from non-temporal stores, or else from ordinary ones. Each pair gets the median
    /// over its cpus.
    pub fn of(document: &Document) -> Self {
        let machine = &document.run.machine;
        let cells: Vec<CellSummary<'_>> = document.cells.iter().map(CellSummary::of).collect();
        let latency = latency(&cells, machine);
        let writes = [StreamKernel::WriteNt, StreamKernel::Write].into_iter();
        let write = writes
            .map(|kernel| (kernel, by_node(&cells, machine, kernel)))
            .find(|(_, matrix)| matrix.range().is_some());
        let mut pairs = BTreeMap::new();
        if let Some((_, matrix)) = &latency {
            take(&mut pairs, matrix, |access| &mut access.read_latency_ps);
        }
        let reads = by_node(&cells, machine, StreamKernel::Read);
        take(&mut pairs, &reads, |access| &mut access.read_bandwidth_mb_per_s);
        if let Some((_, matrix)) = &write {
            take(&mut pairs, matrix, |access| &mut access.write_bandwidth_mb_per_s);
        }
        Self {
            access: pairs.into_values().collect(),
            chase: latency.map(|(chase, _)| chase),
            write: write.map(|(kernel, _)| kernel),
        }
    }
}

/// Stores a matrix of nanoseconds or GB/s in `pairs`; HMAT counts in thousandths of both.
fn take(pairs: &mut BTreeMap<(NodeId, NodeId), AccessAttributes>, matrix: &Matrix, field: Field) {
    for (&row, &column) in
        matrix.rows.iter().flat_map(|row| matrix.columns.iter().map(move |column| (row, column)))
    {
        let Some(entry) = matrix.get(row, column) else { continue };
        let (initiator, target) = (NodeId(row), NodeId(column));
        let access = pairs.entry((initiator, target)).or_insert_with(|| AccessAttributes {
            initiator,
            target,
            class: AccessClass::Cpu,
            ..AccessAttributes::default()
        });
        *field(access) = whole(entry.value * 1000.0);
    }
}

/// Rounds a positive figure to a whole number; `None` for anything else.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked before")]
fn whole(value: f64) -> Option<u64> {
    let rounded = value.round();
    (1.0..1e15).contains(&rounded).then_some(rounded as u64)
}

fn latency(cells: &[CellSummary<'_>], machine: &Machine) -> Option<(Chase, Matrix)> {
    let mut chases: BTreeMap<Chase, Vec<Value>> = BTreeMap::new();
    for cell in cells {
        let is_chase = |latency: &&LatencyCell| {
            let reaches_memory =
                matches!(latency.pattern, AccessPattern::Random | AccessPattern::PageLocal);
            latency.team == Team::Serial && reaches_memory
        };
        let Some(latency) = cell.latency().filter(is_chase) else { continue };
        let Some(node) = node_of(cell, machine, latency.worker.cpu) else { continue };
        let value = Value::of(cell, Metric::Latency, node.0, latency.worker.node.0);
        let chase = (latency.pattern, latency.size_bytes, latency.pages);
        chases.entry(chase).or_default().extend(value);
    }
    let pairs = |values: &[Value]| {
        let pairs: BTreeSet<_> = values.iter().map(|value| (value.row, value.column)).collect();
        pairs.len()
    };
    let best = chases
        .into_iter()
        .max_by_key(|(chase, values)| (pairs(values), chase.1, chase.0, chase.2))
        .filter(|(_, values)| !values.is_empty());
    let unit = Metric::Latency.unit();
    best.map(|(chase, values)| (chase, Matrix::of(unit, Axis::Node, Axis::Node, values)))
}
