//! Latency by buffer size, and the capacities of caches that it shows.

mod levels;

use std::collections::BTreeMap;

use numalab_record::{AccessPattern, CellId, Metric, Pages, Team, WorkerPlan};
use numalab_topology::Machine;
use serde::Serialize;

use super::cell::{CellSummary, Figure};
use super::tlb::Reach;

pub use levels::{Level, LevelName};

/// Minimum number of sizes that make a curve; fewer are listed as single figures.
const LEAST_POINTS: usize = 3;

/// One buffer size of a curve.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CurvePoint {
    /// The buffer's length in bytes.
    pub size_bytes: u64,
    /// The median latency in nanoseconds.
    #[serde(rename = "median_ns")]
    #[schemars(with = "f64")]
    pub figure: Figure,
    /// The id of the cell measured.
    pub cell: CellId,
}

/// Latency by buffer size, for one worker.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Curve {
    /// The cpu and the node of its memory.
    pub worker: WorkerPlan,
    /// The order in which lines are visited.
    pub pattern: AccessPattern,
    /// The page size of the buffer.
    pub pages: Pages,
    /// One chaser at a time, or all at once.
    pub team: Team,
    /// The points, smallest size first.
    pub points: Vec<CurvePoint>,
    /// The plateaus found, smallest size first.
    pub levels: Vec<Level>,
    /// Level and size in bytes of each reported cache that the curve does not show.
    #[serde(skip)]
    pub not_found: Vec<(u8, u64)>,
}

/// Returns all curves of a run, the one with the most points first. `reaches` gives the sizes at
/// which a walk in a given order over given pages exceeds the TLB's reach.
pub(super) fn curves(
    cells: &[CellSummary<'_>],
    machine: &Machine,
    reaches: impl Fn(AccessPattern, Pages) -> Vec<Reach>,
) -> Vec<Curve> {
    let mut groups: BTreeMap<_, BTreeMap<u64, CurvePoint>> = BTreeMap::new();
    for cell in cells {
        let (Some(latency), Some(figure)) = (cell.latency(), cell.figure(Metric::Latency)) else {
            continue;
        };
        if matches!(latency.pattern, AccessPattern::OneLinePer(_)) {
            continue;
        }
        let key = (latency.worker, latency.pattern, latency.pages, latency.team);
        let point = CurvePoint {
            size_bytes: latency.size_bytes,
            figure: figure.clone(),
            cell: cell.cell.id.clone(),
        };
        let points = groups.entry(key).or_default();
        points.insert(latency.size_bytes, point);
    }
    let mut curves: Vec<Curve> = groups
        .into_iter()
        .filter(|(_, points)| points.len() >= LEAST_POINTS)
        .map(|((worker, pattern, pages, team), points)| {
            let points: Vec<CurvePoint> = points.into_values().collect();
            let reported = reported(worker, machine);
            let levels = levels::levels(&points, &reported, &reaches(pattern, pages));
            let is_lost = |(level, _): &(u8, u64)| {
                levels.iter().all(|found| found.name != LevelName::Cache(*level))
            };
            let not_found = reported.into_iter().filter(is_lost).collect();
            Curve { worker, pattern, pages, team, points, levels, not_found }
        })
        .collect();
    curves.sort_by_key(|curve| core::cmp::Reverse(curve.points.len()));
    curves
}

/// Returns level and size in bytes of the data caches that the system reports for the worker.
fn reported(worker: WorkerPlan, machine: &Machine) -> Vec<(u8, u64)> {
    let caches = machine.data_caches_of(worker.cpu).into_iter();
    caches.filter_map(|cache| Some((cache.level, cache.size_bytes?))).collect()
}
