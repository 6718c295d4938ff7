//! The JSON document of a run: its raw samples and the figures computed from them.

mod others;

pub use others::{HomeFound, LoadedFound, NearnessFound, PageWalkFound, TlbFound};

use numalab_record::{AccessPattern, CellId, Document, Metric, Pages, Team, WorkerPlan};
use numalab_stats::Interval;
use numalab_topology::NodeId;
use serde::Serialize;

use crate::run::{
    CellSummary, Curve, LatencyMatrix, Matrix, MatrixEntry, MetricFigures, Remote, RunFinding,
    Summary,
};

/// A run with every raw sample, its findings and its figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunDocument<'a> {
    /// The run as recorded, with every raw sample.
    #[serde(flatten)]
    pub document: &'a Document,
    /// All anomalies, those that cast most doubt on the figures first.
    pub findings: &'a [RunFinding],
    /// Medians, intervals, cache levels, matrices and curves.
    pub results: RunResults<'a>,
}

impl<'a> RunDocument<'a> {
    pub(crate) fn of(summary: &'a Summary<'a>) -> Self {
        let (document, findings) = (summary.document, summary.findings.as_slice());
        Self { document, findings, results: RunResults::of(summary) }
    }
}

/// The figures of a run, without its raw samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunResults<'a> {
    /// One entry per cell and metric, in the plan's order; cells without figures are omitted.
    pub cells: Vec<CellFound<'a>>,
    /// Latency by buffer size, one curve per worker; the curve with the most points first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub latency_by_size: Vec<CurveFound<'a>>,
    /// Latency from cpus to nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub latency_matrices: Vec<LatencyMatrixFound<'a>>,
    /// The cost of remote memory, one entry per pair of different nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remote: Vec<RemoteFound>,
    /// TLB levels by page size.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tlbs: Vec<TlbFound<'a>>,
    /// The cost of page walks by worker and page size.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub page_walks: Vec<PageWalkFound>,
    /// Sequential-read bandwidth of one node's cpus (rows) from one node's memory (columns).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_by_node: Option<MatrixFound<'a>>,
    /// Latency under memory load.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub latency_under_load: Vec<LoadedFound<'a>>,
    /// Cache-line round trips grouped by how close the two cpus are, closest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub core_to_core: Vec<NearnessFound>,
    /// Cache-line round trips between every pair of cpus.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub core_to_core_matrices: Vec<HomeFound<'a>>,
}

impl<'a> RunResults<'a> {
    fn of(summary: &'a Summary<'a>) -> Self {
        let Summary { cells, curves, matrices, tlbs, walks, loaded, c2c, .. } = summary;
        Self {
            cells: cells.iter().flat_map(CellFound::of).collect(),
            latency_by_size: curves.iter().map(CurveFound::of).collect(),
            latency_matrices: matrices.iter().map(LatencyMatrixFound::of).collect(),
            remote: RemoteFound::of(&summary.remote),
            tlbs: tlbs.iter().map(TlbFound::of).collect(),
            page_walks: walks.iter().map(PageWalkFound::of).collect(),
            bandwidth_by_node: summary.bandwidth.by_node.as_ref().map(MatrixFound::of),
            latency_under_load: loaded.iter().map(LoadedFound::of).collect(),
            core_to_core: NearnessFound::of(c2c),
            core_to_core_matrices: HomeFound::of(c2c),
        }
    }
}

/// One metric of one cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CellFound<'a> {
    /// The cell's id.
    pub cell: &'a CellId,
    /// The metric that `median` and the interval are of.
    pub metric: Metric,
    /// The unit of the median and the interval.
    pub unit: &'static str,
    /// The median of the windows that count.
    pub median: f64,
    /// The lower end of the median's 95 % interval; absent with too few windows for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The upper end of the median's 95 % interval; absent with too few windows for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Number of windows measured.
    pub windows: usize,
    /// Number of windows disturbed by other load.
    pub disturbed: usize,
}

impl<'a> CellFound<'a> {
    fn of(cell: &'a CellSummary<'a>) -> impl Iterator<Item = Self> {
        let id = &cell.cell.id;
        cell.figures.iter().filter(|_| cell.counts()).filter_map(|figures| {
            let MetricFigures { metric, windows, disturbed, .. } = *figures;
            let figure = figures.best()?;
            let (low, high) = ends(figure.interval);
            let (unit, median) = (metric.unit().symbol(), figure.median);
            Some(Self { cell: id, metric, unit, median, low, high, windows, disturbed })
        })
    }
}

fn ends(interval: Option<Interval>) -> (Option<f64>, Option<f64>) {
    interval.map_or((None, None), |interval| (Some(interval.lo), Some(interval.hi)))
}

/// Latency by buffer size, for one worker.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurveFound<'a> {
    /// The cpu and the node of its memory.
    pub worker: WorkerPlan,
    /// The order in which lines are visited.
    pub pattern: AccessPattern,
    /// The page size of the buffer.
    pub pages: Pages,
    /// One chaser at a time, or all at once.
    pub team: Team,
    /// The points, smallest size first.
    pub points: Vec<CurvePointFound<'a>>,
    /// The plateaus of the curve (caches, TLB reach, memory), smallest size first.
    pub levels: Vec<LevelFound>,
}

/// One buffer size of a curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurvePointFound<'a> {
    /// The buffer's length in bytes.
    pub size_bytes: u64,
    /// The median latency in nanoseconds.
    pub median_ns: f64,
    /// The id of the cell measured.
    pub cell: &'a CellId,
}

/// A plateau of a curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LevelFound {
    /// `L1`, `L2 TLB`, `memory`, or `unexplained`.
    pub name: String,
    /// The latency on the plateau, in nanoseconds.
    pub latency_ns: f64,
    /// The size at which the plateau ends, in bytes; absent for the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<f64>,
    /// The size that the system reports for the cache of that name, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported_bytes: Option<u64>,
}

impl<'a> CurveFound<'a> {
    fn of(curve: &'a Curve) -> Self {
        let points = curve.points.iter().map(|point| CurvePointFound {
            size_bytes: point.size_bytes,
            median_ns: point.figure.median,
            cell: &point.cell,
        });
        let levels = curve.levels.iter().map(|level| LevelFound {
            name: level.name.to_string(),
            latency_ns: level.latency_ns,
            capacity_bytes: level.capacity_bytes,
            reported_bytes: level.reported_bytes,
        });
        let Curve { worker, pattern, pages, team, .. } = *curve;
        Self { worker, pattern, pages, team, points: points.collect(), levels: levels.collect() }
    }
}

/// A matrix of measured values.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MatrixFound<'a> {
    /// The unit of the values.
    pub unit: &'static str,
    /// The kind of item that a row represents: `cpu`, `node` or `thread`.
    pub rows_are: &'static str,
    /// Row numbers, ascending.
    pub rows: &'a [u32],
    /// The kind of item that a column represents: `cpu`, `node` or `thread`.
    pub columns_are: &'static str,
    /// Column numbers, ascending.
    pub columns: &'a [u32],
    /// One list per row; null where nothing was measured.
    pub values: Vec<Vec<Option<f64>>>,
}

impl<'a> MatrixFound<'a> {
    fn of(matrix: &'a Matrix) -> Self {
        let value = |entry: &Option<_>| entry.as_ref().map(|entry: &MatrixEntry| entry.value);
        Self {
            unit: matrix.unit.symbol(),
            rows_are: matrix.rows_are.name(),
            rows: &matrix.rows,
            columns_are: matrix.columns_are.name(),
            columns: &matrix.columns,
            values: matrix.entries.iter().map(|row| row.iter().map(value).collect()).collect(),
        }
    }
}

/// Latency from cpus to nodes, for one kind of chase.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyMatrixFound<'a> {
    /// The buffer's length in bytes.
    pub size_bytes: u64,
    /// The order in which lines are visited.
    pub pattern: AccessPattern,
    /// The page size of the buffer.
    pub pages: Pages,
    /// One chaser at a time, or all at once.
    pub team: Team,
    /// By cpu (rows) and memory node (columns).
    pub by_cpu: MatrixFound<'a>,
    /// By cpu node (rows) and memory node (columns).
    pub by_node: MatrixFound<'a>,
}

impl<'a> LatencyMatrixFound<'a> {
    fn of(found: &'a LatencyMatrix) -> Self {
        let LatencyMatrix { size_bytes, pattern, pages, team, .. } = *found;
        let (by_cpu, by_node) = (MatrixFound::of(&found.by_cpu), MatrixFound::of(&found.by_node));
        Self { size_bytes, pattern, pages, team, by_cpu, by_node }
    }
}

/// Latency from the cpus of one node to the memory of another.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RemoteFound {
    /// The node of the cpus.
    pub from: NodeId,
    /// The node of the memory.
    pub to: NodeId,
    /// The latency in nanoseconds.
    pub latency_ns: f64,
    /// The latency divided by the local latency of `from`.
    pub ratio: f64,
    /// The firmware's distance, if it gives one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance: Option<u8>,
}

impl RemoteFound {
    fn of(remote: &Remote) -> Vec<Self> {
        let Remote::Measured(cost) = remote else { return Vec::new() };
        let found = cost.pairs.iter().map(|pair| Self {
            from: pair.from,
            to: pair.to,
            latency_ns: pair.latency_ns,
            ratio: pair.ratio,
            distance: pair.distance,
        });
        found.collect()
    }
}
