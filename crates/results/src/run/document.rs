//! The JSON document of a run: its raw samples and the figures computed from them.

use numalab_record::{CellId, Document, Metric, StreamKernel, Unit, WorkerPlan};
use serde::Serialize;

use crate::run::{
    CellSummary, Curve, LatencyMatrix, LoadedCurve, LoadedPoint, Matrix, MetricFigures,
    NearnessFigure, PageWalk, Peak, RemotePair, RoundTrips, RunFinding, Summary, Tlb,
};

/// A run with every raw sample, its findings and its figures.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RunResults<'a> {
    /// One entry per cell and metric, in the plan's order; cells without figures are omitted.
    pub cells: Vec<CellFound<'a>>,
    /// Latency by buffer size, one curve per worker; the curve with the most points first.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub latency_by_size: &'a [Curve],
    /// Latency from cpus to nodes.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub latency_matrices: &'a [LatencyMatrix],
    /// The cost of remote memory, one entry per pair of different nodes.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub remote: &'a [RemotePair],
    /// TLB levels by page size.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub tlbs: &'a [Tlb],
    /// The cost of page walks by worker and page size.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub page_walks: &'a [PageWalk],
    /// Sequential-read bandwidth of one node's cpus (rows) from one node's memory (columns).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_by_node: Option<&'a Matrix>,
    /// Latency under memory load.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub latency_under_load: Vec<LoadedFound<'a>>,
    /// Cache-line round trips grouped by how close the two cpus are, closest first.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub core_to_core: &'a [NearnessFigure],
    /// Cache-line round trips between every pair of cpus.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub core_to_core_matrices: &'a [RoundTrips],
}

impl<'a> RunResults<'a> {
    fn of(summary: &'a Summary<'a>) -> Self {
        Self {
            cells: summary.cells.iter().flat_map(CellFound::of).collect(),
            latency_by_size: &summary.curves,
            latency_matrices: &summary.matrices,
            remote: summary.remote.pairs(),
            tlbs: &summary.tlbs,
            page_walks: &summary.walks,
            bandwidth_by_node: summary.bandwidth.by_node.as_ref(),
            latency_under_load: summary.loaded.iter().map(LoadedFound::of).collect(),
            core_to_core: &summary.c2c.by_nearness,
            core_to_core_matrices: &summary.c2c.by_home,
        }
    }
}

/// One metric of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CellFound<'a> {
    /// The cell's id.
    pub cell: &'a CellId,
    /// The metric that `median` and the interval are of.
    pub metric: Metric,
    /// The unit of the median and the interval.
    pub unit: Unit,
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
            let (low, high) = figure.interval.map(|interval| (interval.lo, interval.hi)).unzip();
            let (unit, median) = (metric.unit(), figure.median);
            Some(Self { cell: id, metric, unit, median, low, high, windows, disturbed })
        })
    }
}

/// Latency by bandwidth of one chaser and its load workers.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LoadedFound<'a> {
    /// The cpu that measures latency and the node of its memory.
    pub chaser: WorkerPlan,
    /// The kernel that each load worker runs.
    pub kernel: StreamKernel,
    /// Number of load workers.
    pub load_workers: usize,
    /// The points, lowest load first.
    pub points: &'a [LoadedPoint],
    /// The point of highest traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak: Option<Peak>,
    /// The first point within 5 % of the peak traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saturation: Option<Peak>,
    /// The knee: the first point with at least twice the idle latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knee: Option<Peak>,
}

impl<'a> LoadedFound<'a> {
    fn of(curve: &'a LoadedCurve<'a>) -> Self {
        let &LoadedCurve { cell, ref points, peak, saturation, knee, .. } = curve;
        Self {
            chaser: cell.chaser,
            kernel: cell.kernel,
            load_workers: cell.load.len(),
            points,
            peak,
            saturation,
            knee: knee.map(|at| Peak { gb_per_s: at.bandwidth, latency_ns: at.latency_ns }),
        }
    }
}
