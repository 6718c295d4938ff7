//! Matrices of values measured between every pair of cpus, nodes or threads.

use std::collections::{BTreeMap, BTreeSet};

use numalab_record::{AccessPattern, CellId, LatencyCell, Metric, Pages, Team, Unit};
use numalab_stats::{Interval, Sample};
use numalab_topology::{CpuId, Machine, NodeId};
use serde::Serialize;

use super::cell::CellSummary;

/// The kind of item that a row or column represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Axis {
    Cpu,
    Node,
}

impl Axis {
    /// Returns the singular word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Node => "node",
        }
    }
}

/// One entry of a matrix; documents have its value.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "f64")]
pub struct MatrixEntry {
    /// The value, in the matrix's unit.
    pub value: f64,
    /// The 95 % interval of a single cell, or the range over several.
    pub spread: Option<Interval>,
    /// The ids of the cells that it summarises.
    pub cells: Vec<CellId>,
}

impl From<MatrixEntry> for f64 {
    fn from(entry: MatrixEntry) -> Self {
        entry.value
    }
}

/// Values by row and column.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Matrix {
    /// The unit of the values.
    pub unit: Unit,
    /// The kind of item that a row represents.
    pub rows_are: Axis,
    /// Row numbers, ascending.
    pub rows: Vec<u32>,
    /// The kind of item that a column represents.
    pub columns_are: Axis,
    /// Column numbers, ascending.
    pub columns: Vec<u32>,
    /// `entries[row][column]`; `None` where nothing was measured.
    #[serde(rename = "values")]
    #[schemars(with = "Vec<Vec<Option<f64>>>")]
    pub entries: Vec<Vec<Option<MatrixEntry>>>,
}

impl Matrix {
    /// Builds a matrix; an entry with several values gets their median and range.
    pub fn of(unit: Unit, rows_are: Axis, columns_are: Axis, values: Vec<Value>) -> Self {
        let unique = |numbers: BTreeSet<u32>| numbers.into_iter().collect::<Vec<u32>>();
        let rows = unique(values.iter().map(|value| value.row).collect());
        let columns = unique(values.iter().map(|value| value.column).collect());
        let mut groups: BTreeMap<(u32, u32), Vec<Value>> = BTreeMap::new();
        for value in values {
            groups.entry((value.row, value.column)).or_default().push(value);
        }
        let entries = rows
            .iter()
            .map(|&row| {
                let entry = |&column: &u32| groups.remove(&(row, column)).and_then(merge);
                columns.iter().map(entry).collect()
            })
            .collect();
        Self { unit, rows_are, rows, columns_are, columns, entries }
    }

    /// Returns the entry at a row and column number.
    pub fn get(&self, row: u32, column: u32) -> Option<&MatrixEntry> {
        let row = self.rows.binary_search(&row).ok()?;
        let column = self.columns.binary_search(&column).ok()?;
        self.entries[row][column].as_ref()
    }

    /// Returns the smallest and largest value.
    pub fn range(&self) -> Option<Interval> {
        let values = self.entries.iter().flatten().flatten();
        values.map(|entry| entry.value).fold(None, |range, value| {
            let (lo, hi) = range.map_or((value, value), |range: Interval| (range.lo, range.hi));
            Some(Interval { lo: lo.min(value), hi: hi.max(value) })
        })
    }

    /// Returns `true` if there is nothing to compare: fewer than two entries.
    pub fn is_trivial(&self) -> bool {
        self.entries.iter().flatten().flatten().count() < 2
    }
}

/// A value to be put into a matrix.
#[derive(Clone, Debug)]
pub struct Value {
    pub row: u32,
    pub column: u32,
    pub entry: MatrixEntry,
}

impl Value {
    /// Returns the figure of `metric` of a cell as the value of a row and a column; `None` if the
    /// cell has none.
    pub fn of(cell: &CellSummary<'_>, metric: Metric, row: u32, column: u32) -> Option<Self> {
        let figure = cell.figure(metric)?;
        let entry = MatrixEntry {
            value: figure.median,
            spread: figure.interval,
            cells: vec![cell.cell.id.clone()],
        };
        Some(Self { row, column, entry })
    }
}

fn merge(values: Vec<Value>) -> Option<MatrixEntry> {
    if let [single] = values.as_slice() {
        return Some(single.entry.clone());
    }
    let cells = values.iter().flat_map(|value| value.entry.cells.clone());
    let cells = cells.collect();
    let numbers: Vec<f64> = values.iter().map(|value| value.entry.value).collect();
    let sample = Sample::new(numbers).ok()?;
    let spread = Some(Interval { lo: sample.min(), hi: sample.max() });
    Some(MatrixEntry { value: sample.median(), spread, cells })
}

/// Latency from every measured cpu to every measured node, for one kind of chase.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LatencyMatrix {
    /// The buffer's length in bytes.
    pub size_bytes: u64,
    /// The order in which lines are visited.
    pub pattern: AccessPattern,
    /// The page size of the buffer.
    pub pages: Pages,
    /// One chaser at a time, or all at once.
    pub team: Team,
    /// The figures by cpu (rows) and memory node (columns).
    pub by_cpu: Matrix,
    /// The figures by cpu node (rows) and memory node (columns): medians over the node's cpus.
    pub by_node: Matrix,
}

type Chase = (AccessPattern, u64, Pages);

/// Returns one matrix per team, from the largest group of latency cells that differ only in worker;
/// of equal groups, from the one with the largest buffer.
pub fn latency_matrices(cells: &[CellSummary<'_>], machine: &Machine) -> Vec<LatencyMatrix> {
    [Team::Serial, Team::Concurrent]
        .into_iter()
        .filter_map(|team| latency_matrix(cells, machine, team))
        .collect()
}

fn latency_matrix(
    cells: &[CellSummary<'_>],
    machine: &Machine,
    team: Team,
) -> Option<LatencyMatrix> {
    let mut groups: BTreeMap<Chase, Vec<(&CellSummary<'_>, &LatencyCell)>> = BTreeMap::new();
    for cell in cells {
        let Some(latency) = cell.latency().filter(|latency| latency.team == team) else {
            continue;
        };
        if cell.figure(Metric::Latency).is_some() {
            let chase = (latency.pattern, latency.size_bytes, latency.pages);
            groups.entry(chase).or_default().push((cell, latency));
        }
    }
    let workers = |group: &[(&CellSummary<'_>, &LatencyCell)]| {
        let distinct: BTreeSet<_> = group.iter().map(|(_, latency)| latency.worker).collect();
        distinct.len()
    };
    let (chase, group) =
        groups.into_iter().max_by_key(|(chase, group)| (workers(group), chase.1, chase.2))?;
    if workers(&group) < 2 {
        return None;
    }
    let by_cpu = group.iter().filter_map(|(cell, latency)| {
        let worker = latency.worker;
        Value::of(cell, Metric::Latency, worker.cpu.0, worker.node.0)
    });
    let by_node = group.iter().filter_map(|(cell, latency)| {
        let node = node_of(cell, machine, latency.worker.cpu)?;
        Value::of(cell, Metric::Latency, node.0, latency.worker.node.0)
    });
    let unit = Metric::Latency.unit();
    Some(LatencyMatrix {
        pattern: chase.0,
        size_bytes: chase.1,
        pages: chase.2,
        team,
        by_cpu: Matrix::of(unit, Axis::Cpu, Axis::Node, by_cpu.collect()),
        by_node: Matrix::of(unit, Axis::Node, Axis::Node, by_node.collect()),
    })
}

/// Returns the node of a cpu from the machine's topology, or else from the cell's proof of
/// placement.
pub(super) fn node_of(cell: &CellSummary<'_>, machine: &Machine, cpu: CpuId) -> Option<NodeId> {
    let proven = || {
        let placement = cell.placements.iter().find(|placement| placement.cpu == cpu);
        placement.and_then(|placement| placement.cpu_node)
    };
    machine.cpu(cpu).and_then(|cpu| cpu.node).or_else(proven)
}
