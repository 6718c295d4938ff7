//! Latency by buffer size, and the capacities of caches that it shows.

use std::collections::BTreeMap;

use numalab_record::{AccessPattern, CellId, Metric, Pages, Team, WorkerPlan};
use numalab_stats::{SizePoint, plateaus};
use numalab_topology::Machine;
use serde::Serialize;

use super::cell::{CellSummary, Figure};
use super::tlb::Reach;

/// Minimum number of sizes that make a curve; fewer are listed as single figures.
const LEAST_POINTS: usize = 3;
/// Largest ratio between a plateau's end and a TLB reach for the two to be the same.
const SAME_REACH_RATIO: f64 = 1.25;
/// Largest ratio between a found and a reported capacity for the two to be the same cache.
const SAME_CACHE_RATIO: f64 = 4.0;
/// Least ratio between the latency of the largest size and the last plateau for that size to lie
/// beyond it. It is a single size, which may be disturbed.
const BEYOND_RATIO: f64 = 2.0;

/// One buffer size of a curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurvePoint {
    /// The buffer's length in bytes.
    pub size_bytes: u64,
    /// The median latency in nanoseconds.
    #[serde(rename = "median_ns")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub figure: Figure,
    /// The id of the cell measured.
    pub cell: CellId,
}

/// The part of the memory hierarchy that a plateau represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(into = "String")]
pub enum LevelName {
    /// The data cache of this level.
    Cache(u8),
    /// The reach of this TLB level: the next plateau is the same memory with a costlier
    /// translation.
    Tlb(u8),
    /// No reported cache explains the plateau.
    Unexplained,
    /// Main memory.
    Memory,
}

impl core::fmt::Display for LevelName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Cache(level) => f.pad(&format!("L{level}")),
            Self::Tlb(level) => f.pad(&format!("L{level} TLB")),
            Self::Unexplained => f.pad("unexplained"),
            Self::Memory => f.pad("memory"),
        }
    }
}

impl From<LevelName> for String {
    fn from(name: LevelName) -> Self {
        name.to_string()
    }
}

/// A plateau of a curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Level {
    /// The part that it represents: `L1`, `L2 TLB`, `memory`, or `unexplained`.
    pub name: LevelName,
    /// The latency on the plateau, in nanoseconds.
    pub latency_ns: f64,
    /// The smallest size on it, in bytes.
    #[serde(skip)]
    pub from_bytes: u64,
    /// The largest size on it, in bytes.
    #[serde(skip)]
    pub to_bytes: u64,
    /// The size in bytes at which 40 % of the step to the next plateau is reached; `None` for the
    /// last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<f64>,
    /// The size in bytes up to which latency stays within 10 % of the plateau; `None` for the last.
    #[serde(skip)]
    pub undisturbed_bytes: Option<f64>,
    /// The size that the system reports for the cache of that name, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported_bytes: Option<u64>,
}

/// Latency by buffer size, for one worker.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// Level and size in bytes of each reported cache that no plateau matches.
    #[serde(skip)]
    pub not_found: Vec<(u8, u64)>,
}

/// Returns all curves of a run, the one with the most points first. `reaches` gives the sizes at
/// which a walk in a given order over given pages outgrows the TLB.
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
            let levels = levels(&points, reported.clone(), &reaches(pattern, pages));
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

fn levels(points: &[CurvePoint], mut reported: Vec<(u8, u64)>, reaches: &[Reach]) -> Vec<Level> {
    let size_points: Vec<SizePoint> = points
        .iter()
        .map(|point| SizePoint { size_bytes: point.size_bytes, latency_ns: point.figure.median })
        .collect();
    let found = plateaus(&size_points).unwrap_or_default();
    let largest = reported.iter().map(|&(_, bytes)| bytes).max();
    let ended_at_ns = points.last().map_or(0.0, |point| point.figure.median);
    let mut levels = Vec::new();
    for (index, level) in found.iter().enumerate() {
        let (name, reported_bytes) = match level.capacity_bytes {
            Some(capacity) => name_reach(capacity, &reported, reaches)
                .unwrap_or_else(|| name_cache(capacity, &mut reported)),
            // A cache has not been found yet, and the largest size is above the plateau, so this is
            // not memory.
            None if !reported.is_empty() && ended_at_ns >= BEYOND_RATIO * level.latency_ns => {
                name_cache(level.to_bytes as f64, &mut reported)
            }
            None => name_last(index, level.to_bytes, largest),
        };
        levels.push(Level {
            name,
            latency_ns: level.latency_ns,
            from_bytes: level.from_bytes,
            to_bytes: level.to_bytes,
            capacity_bytes: level.capacity_bytes,
            undisturbed_bytes: level.undisturbed_bytes,
            reported_bytes,
        });
    }
    levels
}

/// Names a plateau after the TLB level that it outgrows, unless a reported cache is as close.
fn name_reach(
    capacity: f64,
    reported: &[(u8, u64)],
    reaches: &[Reach],
) -> Option<(LevelName, Option<u64>)> {
    let is_cache = |&(_, bytes): &(u8, u64)| {
        let ratio = capacity / (bytes as f64).max(1.0);
        ratio.max(ratio.recip()) <= SAME_REACH_RATIO
    };
    let is_passed = |reach: &&Reach| {
        capacity >= reach.from_bytes as f64 / SAME_REACH_RATIO
            && capacity <= reach.to_bytes as f64 * SAME_REACH_RATIO
    };
    let reach = reaches.iter().find(is_passed).filter(|_| !reported.iter().any(is_cache))?;
    Some((LevelName::Tlb(reach.level), None))
}

/// Names a plateau after the reported cache closest in size, and removes that cache and all smaller
/// ones from `reported`. A single remaining cache also names a plateau that ends far below its
/// reported size, because other cpus may share it.
fn name_cache(capacity: f64, reported: &mut Vec<(u8, u64)>) -> (LevelName, Option<u64>) {
    #[expect(clippy::cast_precision_loss, reason = "compared by factors")]
    let factor = |bytes: u64| {
        let ratio = capacity / (bytes as f64).max(1.0);
        ratio.max(ratio.recip())
    };
    #[expect(clippy::cast_precision_loss, reason = "compared by factors")]
    let is_below = |bytes: u64| capacity < bytes as f64;
    let nearest = (0..reported.len())
        .min_by(|&a, &b| factor(reported[a].1).total_cmp(&factor(reported[b].1)))
        .filter(|&at| reported.len() == 1 || factor(reported[at].1) <= SAME_CACHE_RATIO)
        .filter(|&at| factor(reported[at].1) <= SAME_CACHE_RATIO || is_below(reported[at].1));
    match nearest {
        Some(at) => {
            let (level, bytes) = reported[at];
            reported.drain(..=at);
            (LevelName::Cache(level), Some(bytes))
        }
        None => (LevelName::Unexplained, None),
    }
}

/// Names the last plateau memory if it extends beyond every reported cache, or, if none is
/// reported, if there are others.
fn name_last(index: usize, to_bytes: u64, largest: Option<u64>) -> (LevelName, Option<u64>) {
    let is_memory = index > 0 && largest.is_none_or(|largest| to_bytes > largest);
    if is_memory { (LevelName::Memory, None) } else { (LevelName::Unexplained, None) }
}
