//! A run in JSON: what was measured, and what it says.

mod others;

pub use others::{HomeFound, LoadedFound, NearnessFound, PageWalkFound, TlbFound};

use numalab_record::{AccessPattern, CellId, Document, Metric, Pages, Team, WorkerPlan};
use numalab_stats::Interval;
use numalab_topology::NodeId;
use serde::Serialize;

use crate::run::{
    CellSummary, Curve, Entry, LatencyMatrix, Matrix, MetricFigures, Remote, RunFinding, Summary,
};

/// A run with every raw sample, and what it says.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunDocument<'a> {
    /// The run.
    #[serde(flatten)]
    pub document: &'a Document,
    /// All anomalies, what casts most doubt first.
    pub findings: &'a [RunFinding],
    /// Medians, intervals, levels, matrices and curves.
    pub results: RunResults<'a>,
}

impl<'a> RunDocument<'a> {
    pub(crate) fn of(summary: &'a Summary<'a>) -> Self {
        let (document, findings) = (summary.document, summary.findings.as_slice());
        Self { document, findings, results: RunResults::of(summary) }
    }
}

/// What a run says, without its raw samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunResults<'a> {
    /// An entry for each cell and metric, in the plan's order; cells without figures are left out.
    pub cells: Vec<CellFound<'a>>,
    /// Latency over size, the curve with most points first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub latency_by_size: Vec<CurveFound<'a>>,
    /// Latency from cpus to nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub latency_matrices: Vec<LatencyMatrixFound<'a>>,
    /// What remote memory costs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remote: Vec<RemoteFound>,
    /// What the TLB holds, by pages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tlbs: Vec<TlbFound<'a>>,
    /// What page walks cost.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub page_walks: Vec<PageWalkFound>,
    /// Sequential reads by the cpus of one node (rows) from the memory of one node (columns).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_by_node: Option<MatrixFound<'a>>,
    /// Latency while the memory is busy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub latency_under_load: Vec<LoadedFound<'a>>,
    /// Round trips of a cache line by how near the cpus are, nearest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub core_to_core: Vec<NearnessFound>,
    /// Round trips of a cache line between any two cpus.
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

/// The figure of one metric of one cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CellFound<'a> {
    /// The cell.
    pub cell: &'a CellId,
    /// The metric.
    pub metric: Metric,
    /// The unit of median and interval.
    pub unit: &'static str,
    /// The median of the windows that count.
    pub median: f64,
    /// The lower end of the median's 95 % interval; absent with too few windows for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The upper end of the median's 95 % interval; absent with too few windows for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Windows measured.
    pub windows: usize,
    /// Windows that other load disturbed.
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

/// Latency over size of one worker.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurveFound<'a> {
    /// The cpu, and the node of its memory.
    pub worker: WorkerPlan,
    /// The order of visits.
    pub pattern: AccessPattern,
    /// The pages.
    pub pages: Pages,
    /// Who chased at the same time.
    pub team: Team,
    /// The points, smallest size first.
    pub points: Vec<CurvePointFound<'a>>,
    /// The caches, the TLB's reach and memory as the curve shows them, smallest size first.
    pub levels: Vec<LevelFound>,
}

/// One point of a curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurvePointFound<'a> {
    /// The buffer's length in bytes.
    pub size_bytes: u64,
    /// The median latency in nanoseconds.
    pub median_ns: f64,
    /// The cell.
    pub cell: &'a CellId,
}

/// A plateau of a curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LevelFound {
    /// `L1`, `L2 TLB`, `memory`, or `unexplained`.
    pub name: String,
    /// Its latency in nanoseconds.
    pub latency_ns: f64,
    /// Where it ends, in bytes; absent for the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<f64>,
    /// The size that the system reports for the cache of this name, in bytes.
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

/// Values between rows and columns.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MatrixFound<'a> {
    /// The unit of the values.
    pub unit: &'static str,
    /// `cpu`, `node` or `thread`.
    pub rows_are: &'static str,
    /// The rows' numbers.
    pub rows: &'a [u32],
    /// `cpu`, `node` or `thread`.
    pub columns_are: &'static str,
    /// The columns' numbers.
    pub columns: &'a [u32],
    /// A list for each row; null where nothing was measured.
    pub values: Vec<Vec<Option<f64>>>,
}

impl<'a> MatrixFound<'a> {
    fn of(matrix: &'a Matrix) -> Self {
        let value = |entry: &Option<_>| entry.as_ref().map(|entry: &Entry| entry.value);
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

/// Latency from cpus to nodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyMatrixFound<'a> {
    /// The buffer's length in bytes.
    pub size_bytes: u64,
    /// The order of visits.
    pub pattern: AccessPattern,
    /// The pages.
    pub pages: Pages,
    /// Who chased at the same time.
    pub team: Team,
    /// By cpu and node of the memory.
    pub by_cpu: MatrixFound<'a>,
    /// By node of the cpu and node of the memory.
    pub by_node: MatrixFound<'a>,
}

impl<'a> LatencyMatrixFound<'a> {
    fn of(found: &'a LatencyMatrix) -> Self {
        let LatencyMatrix { size_bytes, pattern, pages, team, .. } = *found;
        let (by_cpu, by_node) = (MatrixFound::of(&found.by_cpu), MatrixFound::of(&found.by_node));
        Self { size_bytes, pattern, pages, team, by_cpu, by_node }
    }
}

/// One remote access.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RemoteFound {
    /// The node of the cpus.
    pub from: NodeId,
    /// The node of the memory.
    pub to: NodeId,
    /// The latency in nanoseconds.
    pub latency_ns: f64,
    /// The latency over that of the cpus' own node.
    pub ratio: f64,
    /// The distance that the firmware gives, if it does.
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
