//! JSON entries for address translation, loaded latency and core-to-core round trips.

use numalab_record::{CellId, Pages, StreamKernel, WorkerPlan};
use serde::Serialize;

use super::MatrixFound;
use crate::run::{CoreToCore, LoadedCurve, LoadedPoint, PageWalk, Peak, Tlb, TlbLevel};

/// TLB levels for one page size.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TlbFound<'a> {
    /// The cpu and the node of its memory.
    pub worker: WorkerPlan,
    /// The page size of the buffer.
    pub pages: Pages,
    /// Distance between the lines loaded, in bytes.
    pub apart_bytes: u64,
    /// The levels, first level first.
    pub levels: &'a [TlbLevel],
    /// The extra cost of a load that misses the last level, in nanoseconds; `None` if none missed
    /// it.
    pub beyond_ns: Option<f64>,
    /// Pairs of the number of lines loaded and the translation cost of each, in nanoseconds.
    pub costs_ns: Vec<(u64, f64)>,
}

impl<'a> TlbFound<'a> {
    pub(super) fn of(tlb: &'a Tlb) -> Self {
        Self {
            worker: tlb.worker,
            pages: tlb.pages,
            apart_bytes: tlb.apart_bytes,
            levels: &tlb.levels,
            beyond_ns: tlb.beyond_ns,
            costs_ns: tlb.points.iter().map(|point| (point.pages, point.cost_ns())).collect(),
        }
    }
}

/// The cost of a page walk.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PageWalkFound {
    /// The cpu and the node of its memory.
    pub worker: WorkerPlan,
    /// The page size of the buffer.
    pub pages: Pages,
    /// The buffer's length in bytes.
    pub size_bytes: u64,
    /// The extra latency of a random load over a load within one page, in nanoseconds.
    pub cost_ns: f64,
}

impl PageWalkFound {
    pub(super) fn of(walk: &PageWalk) -> Self {
        let PageWalk { worker, pages, size_bytes, cost_ns, .. } = *walk;
        Self { worker, pages, size_bytes, cost_ns }
    }
}

/// Latency by bandwidth of one chaser and its load workers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadedFound<'a> {
    /// The cpu that measures latency and the node of its memory.
    pub chaser: WorkerPlan,
    /// The kernel that each load worker runs.
    pub kernel: StreamKernel,
    /// Number of load workers.
    pub load_workers: usize,
    /// The points by rising load.
    pub points: Vec<LoadedPointFound<'a>>,
    /// The point of highest traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak: Option<TrafficFound>,
    /// The first point within 5 % of the peak traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saturation: Option<TrafficFound>,
    /// The first point at twice the latency of the first point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knee: Option<TrafficFound>,
}

/// One throttle setting of the load workers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadedPointFound<'a> {
    /// The id of the cell measured.
    pub cell: &'a CellId,
    /// The chaser's median latency in nanoseconds.
    pub latency_ns: f64,
    /// The bandwidth that all load workers count together, in GB/s; 0 without load.
    pub bandwidth_gb_per_s: f64,
    /// The memory traffic that this bandwidth causes, in GB/s; 0 without load.
    pub traffic_gb_per_s: f64,
}

/// A latency at a given memory traffic.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrafficFound {
    /// The traffic in GB/s.
    pub gb_per_s: f64,
    /// The latency at that traffic, in nanoseconds.
    pub latency_ns: f64,
}

impl From<Peak> for TrafficFound {
    fn from(Peak { gb_per_s, latency_ns }: Peak) -> Self {
        Self { gb_per_s, latency_ns }
    }
}

impl<'a> LoadedFound<'a> {
    pub(super) fn of(curve: &'a LoadedCurve<'a>) -> Self {
        let knee = curve
            .knee
            .map(|knee| TrafficFound { gb_per_s: knee.bandwidth, latency_ns: knee.latency_ns });
        Self {
            chaser: curve.cell.chaser,
            kernel: curve.cell.kernel,
            load_workers: curve.cell.load.len(),
            points: curve.points.iter().map(LoadedPointFound::of).collect(),
            peak: curve.peak.map(TrafficFound::from),
            saturation: curve.saturation.map(TrafficFound::from),
            knee,
        }
    }
}

impl<'a> LoadedPointFound<'a> {
    fn of(point: &'a LoadedPoint) -> Self {
        Self {
            cell: &point.cell,
            latency_ns: point.latency.median,
            bandwidth_gb_per_s: point.bandwidth_gb_per_s(),
            traffic_gb_per_s: point.traffic_gb_per_s,
        }
    }
}

/// Round trips of all pairs of cpus at the same closeness.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NearnessFound {
    /// The closest thing that the cpus share, such as `same core` or `same node`.
    pub nearness: &'static str,
    /// Number of pairs measured.
    pub pairs: usize,
    /// The median round trip of the pairs, in nanoseconds.
    pub median_ns: f64,
    /// The round trip of the fastest pair, in nanoseconds.
    pub fastest_ns: f64,
    /// The round trip of the slowest pair, in nanoseconds.
    pub slowest_ns: f64,
}

impl NearnessFound {
    pub(super) fn of(found: &CoreToCore) -> Vec<Self> {
        let figures = found.by_nearness.iter().map(|figure| Self {
            nearness: figure.nearness.name(),
            pairs: figure.pairs,
            median_ns: figure.median_ns,
            fastest_ns: figure.range_ns.lo,
            slowest_ns: figure.range_ns.hi,
        });
        figures.collect()
    }
}

/// Round trips between every pair of cpus, for one location of the line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HomeFound<'a> {
    /// The node that holds the line, such as `line on the sender's node`.
    pub home: &'static str,
    /// Round trips by first sender (rows) and responder (columns).
    pub round_trips: MatrixFound<'a>,
}

impl<'a> HomeFound<'a> {
    pub(super) fn of(found: &'a CoreToCore) -> Vec<Self> {
        let matrices = found.by_home.iter();
        matrices
            .map(|(home, matrix)| Self { home: home.name(), round_trips: MatrixFound::of(matrix) })
            .collect()
    }
}
