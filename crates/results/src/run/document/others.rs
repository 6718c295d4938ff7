//! A run in JSON: address translation, busy memory, and cache lines between cpus.

use numalab_record::{CellId, Pages, StreamKernel, WorkerPlan};
use serde::Serialize;

use super::MatrixFound;
use crate::run::{CoreToCore, LoadedCurve, LoadedPoint, PageWalk, Peak, Tlb, TlbLevel};

/// What the TLB holds, for pages of one size.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TlbFound<'a> {
    /// The cpu, and the node of its memory.
    pub worker: WorkerPlan,
    /// The pages.
    pub pages: Pages,
    /// How far apart the lines lie, in bytes.
    pub apart_bytes: u64,
    /// The levels, the first one first.
    pub levels: &'a [TlbLevel],
    /// What a load costs beyond the last of them, in nanoseconds; `None` where none was left.
    pub beyond_ns: Option<f64>,
    /// Lines loaded, and what the translation of each costs, in nanoseconds.
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

/// What a page walk costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PageWalkFound {
    /// The cpu, and the node of its memory.
    pub worker: WorkerPlan,
    /// The pages.
    pub pages: Pages,
    /// The buffer's length in bytes.
    pub size_bytes: u64,
    /// What a random load costs more than one within pages, in nanoseconds.
    pub cost_ns: f64,
}

impl PageWalkFound {
    pub(super) fn of(walk: &PageWalk) -> Self {
        let PageWalk { worker, pages, size_bytes, cost_ns, .. } = *walk;
        Self { worker, pages, size_bytes, cost_ns }
    }
}

/// Latency over bandwidth of one chaser and its load workers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadedFound<'a> {
    /// The chaser.
    pub chaser: WorkerPlan,
    /// What each load worker does.
    pub kernel: StreamKernel,
    /// Load workers.
    pub load_workers: usize,
    /// The points in order of rising load.
    pub points: Vec<LoadedPointFound<'a>>,
    /// The most traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak: Option<TrafficFound>,
    /// Where traffic is first within 5 % of the peak.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saturation: Option<TrafficFound>,
    /// Where latency first reaches twice that of the first point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knee: Option<TrafficFound>,
}

/// One throttle setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadedPointFound<'a> {
    /// The cell.
    pub cell: &'a CellId,
    /// The chaser's median latency in nanoseconds.
    pub latency_ns: f64,
    /// What the load workers asked for together, in GB/s; 0 without load.
    pub bandwidth_gb_per_s: f64,
    /// What moves in memory for that, in GB/s; 0 without load.
    pub traffic_gb_per_s: f64,
}

/// A latency under a traffic.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrafficFound {
    /// The traffic in GB/s.
    pub gb_per_s: f64,
    /// The latency under it in nanoseconds.
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

/// The round trips of all pairs of cpus that are equally near.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NearnessFound {
    /// What the cpus share, such as `same core` or `same node`.
    pub nearness: &'static str,
    /// Pairs measured.
    pub pairs: usize,
    /// The median round trip of the pairs in nanoseconds.
    pub median_ns: f64,
    /// The fastest pair in nanoseconds.
    pub fastest_ns: f64,
    /// The slowest pair in nanoseconds.
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

/// Round trips between any two cpus, by where the line is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HomeFound<'a> {
    /// The node of the line's memory, such as `line on the sender's node`.
    pub home: &'static str,
    /// Round trips by first sender (row) and answerer (column).
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
