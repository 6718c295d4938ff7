//! The levels of the memory hierarchy that a latency curve shows, and their names. A plateau is
//! named by the range of sizes that it covers, not by its end: if others use most of a shared
//! cache, the next plateau is that of memory, and the step to it says nothing about where the cache
//! ends. Plateaus are therefore assigned in order to the caches that the system reports, at minimum
//! cost in octaves. A wrong size from a hypervisor then does less harm than a wrong order. Levels
//! are found on the 10th percentile of each size's windows, which neighbours disturb least; ends
//! are those of medians. `tests/hierarchy.rs` has the error rates.

use numalab_stats::{LatencyCurve, SizePoint, median};
use serde::Serialize;

use super::super::tlb::Reach;
use super::CurvePoint;

/// Largest ratio between a plateau's end and a TLB reach for the two to be the same.
const SAME_REACH_RATIO: f64 = 1.25;
/// Minimum ratio between the latency of the largest size and that of the last plateau for the
/// largest size to be beyond the plateau. It is a single size, which may be disturbed.
const BEYOND_RATIO: f64 = 2.0;
/// A plateau above this share of memory's latency is memory.
const MEMORY_SHARE: f64 = 0.7;
/// Ratio of a cache's medians to its 10th percentiles above which others disturb it.
const DISTURBED_RATIO: f64 = 1.1;
/// Cost of each octave by which a plateau lies above a cache's reported size.
const COST_ABOVE: f64 = 1.5;
/// Cost of each octave by which a plateau lies below the reported size; low, because others may
/// share the cache.
const COST_BELOW: f64 = 0.3;
/// Maximum cost of such a plateau: a hypervisor may report the caches of a whole package.
const MOST_COST_BELOW: f64 = 2.4;
/// Cost of a plateau that no reported cache explains.
const COST_UNEXPLAINED: f64 = 3.0;
/// Ratio of latencies below which a plateau that no cache explains belongs to the cache next to it:
/// translation divides the plateau of a cache where the host breaks huge pages.
const SAME_CACHE_RATIO: f64 = 1.5;
/// Minimum ratio between the latency of a cache without plateau and that of the cache before.
const NEXT_RATIO: f64 = 1.25;
/// Share of memory's latency below which a bound shows a cache: it serves about half of the loads that
/// the caches before it do not serve, or more.
const SERVED_SHARE: f64 = 0.5;
/// A cache ends where the curve has risen by this share of the step to the next level.
const END_SHARE: f64 = 0.36;
/// Multiple of its latency at which a cache ends at the latest: if the next level is disturbed, the
/// step to it is too large.
const END_RATIO: f64 = 1.9;

/// The part of the memory hierarchy that a plateau represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(into = "String")]
pub enum LevelName {
    /// The data cache of this level.
    Cache(u8),
    /// The reach of this TLB level: the next plateau is the same memory with a more expensive
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
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Level {
    /// The part of the hierarchy that the plateau represents: `L1`, `L2 TLB`, `memory`, or
    /// `unexplained`.
    pub name: LevelName,
    /// The latency on the plateau, in nanoseconds.
    pub latency_ns: f64,
    /// The latency of its slowest part, in nanoseconds, if translation divides the plateau.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowest_ns: Option<f64>,
    /// The smallest size on it, in bytes.
    #[serde(skip)]
    pub from_bytes: u64,
    /// The largest size on it, in bytes.
    #[serde(skip)]
    pub to_bytes: u64,
    /// True if the level has no plateau and `latency_ns` is an upper bound: other users may have
    /// taken most of the cache.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub at_most: bool,
    /// The size in bytes at which the cache ends; `None` for the last level, and where the next
    /// cache that the system reports is not found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<f64>,
    /// The size in bytes up to which latency stays within 10 % of the plateau; `None` for the last.
    #[serde(skip)]
    pub undisturbed_bytes: Option<f64>,
    /// The size that the system reports for the cache of that name, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported_bytes: Option<u64>,
}

impl Level {
    /// Reports whether two neighbouring plateaus are one cache, divided by translation.
    fn is_one_with(&self, next: &Self) -> bool {
        use LevelName::{Cache, Tlb, Unexplained};
        let names = (self.name, next.name);
        let may_be = matches!(names, (Unexplained | Tlb(_), Cache(_)) | (Cache(_), Unexplained));
        may_be && next.latency_ns < SAME_CACHE_RATIO * self.latency_ns
    }

    /// Adds the next plateau of the same cache.
    fn join(&mut self, next: &Self) {
        if self.name == LevelName::Unexplained {
            (self.name, self.reported_bytes) = (next.name, next.reported_bytes);
        }
        self.slowest_ns = Some(next.latency_ns);
        (self.to_bytes, self.capacity_bytes) = (next.to_bytes, next.capacity_bytes);
    }
}

/// Returns the levels that a curve shows, with level and size in bytes of each reported cache.
pub(super) fn levels(
    points: &[CurvePoint],
    reported: &[(u8, u64)],
    reaches: &[Reach],
) -> Vec<Level> {
    let curve = |latency: fn(&CurvePoint) -> f64| {
        let point = |point: &CurvePoint| SizePoint {
            size_bytes: point.size_bytes,
            latency_ns: latency(point),
        };
        LatencyCurve::new(&points.iter().map(point).collect::<Vec<_>>())
    };
    let (Ok(floors), Ok(medians)) =
        (curve(|point| point.figure.floor), curve(|point| point.figure.median))
    else {
        return Vec::new();
    };
    let mut levels: Vec<Level> = floors.plateaus().into_iter().map(unnamed).collect();
    let last_ns = points.last().map_or(0.0, |point| point.figure.floor);
    let open = name_memory(&mut levels, reported, last_ns);
    name_reaches(&mut levels, reported, reaches);
    name_caches(&mut levels[..open], reported);
    levels.iter_mut().for_each(|level| take_medians(level, points));
    let mut levels = joined(levels);
    add_hidden(&mut levels, reported, points, &floors);
    end(&mut levels, reported, &medians);
    levels
}

fn unnamed(plateau: numalab_stats::Level) -> Level {
    Level {
        name: LevelName::Unexplained,
        latency_ns: plateau.latency_ns,
        slowest_ns: None,
        from_bytes: plateau.from_bytes,
        to_bytes: plateau.to_bytes,
        at_most: false,
        capacity_bytes: plateau.capacity_bytes,
        undisturbed_bytes: plateau.undisturbed_bytes,
        reported_bytes: None,
    }
}

/// Names the last plateau memory if it extends beyond every reported cache, or, if none is
/// reported, if there are other plateaus; joins plateaus that are nearly as slow with it. Returns
/// the number of plateaus that may be caches: the last one is not a cache if the curve does not
/// leave it.
fn name_memory(levels: &mut Vec<Level>, reported: &[(u8, u64)], last_ns: f64) -> usize {
    let largest = reported.iter().map(|&(_, bytes)| bytes).max();
    let count = levels.len();
    let Some(last) = levels.last_mut() else { return 0 };
    let (is_open, is_left) =
        (last.capacity_bytes.is_none(), last_ns >= BEYOND_RATIO * last.latency_ns);
    // If only the largest size is beyond it, it is a cache that no earlier plateau represents.
    if is_left && (!is_open || count <= reported.len()) {
        return count;
    }
    if count == 1 || largest.is_some_and(|largest| last.to_bytes <= largest) {
        return count - usize::from(is_open);
    }
    last.name = LevelName::Memory;
    let memory_ns = last.latency_ns;
    let is_cache = |level: &Level| level.latency_ns <= MEMORY_SHARE * memory_ns;
    let first = levels.iter().take_while(|level| is_cache(level)).count();
    let from_bytes = levels[first].from_bytes;
    levels.drain(first..count - 1);
    let memory = &mut levels[first];
    memory.from_bytes = from_bytes;
    (memory.capacity_bytes, memory.undisturbed_bytes) = (None, None);
    first
}

/// Sets the latency of a level to the median of its sizes' medians, unless others disturb the
/// cache.
fn take_medians(level: &mut Level, points: &[CurvePoint]) {
    let sizes = level.from_bytes..=level.to_bytes;
    let on_it = points.iter().filter(|point| sizes.contains(&point.size_bytes));
    let medians: Vec<f64> = on_it.map(|point| point.figure.median).collect();
    let Some(median) = median(&medians) else { return };
    if level.name == LevelName::Memory || median <= DISTURBED_RATIO * level.latency_ns {
        level.latency_ns = median;
    }
}

/// Names plateaus that end at the reach of a TLB level after it, unless a reported cache is as
/// close.
fn name_reaches(levels: &mut [Level], reported: &[(u8, u64)], reaches: &[Reach]) {
    for level in levels.iter_mut().filter(|level| level.name == LevelName::Unexplained) {
        let Some(capacity) = level.capacity_bytes else { continue };
        let is_cache = |&(_, bytes): &(u8, u64)| {
            let ratio = capacity / (bytes as f64).max(1.0);
            ratio.max(ratio.recip()) <= SAME_REACH_RATIO
        };
        let is_passed = |reach: &&Reach| {
            capacity >= reach.from_bytes as f64 / SAME_REACH_RATIO
                && capacity <= reach.to_bytes as f64 * SAME_REACH_RATIO
        };
        let reach = reaches.iter().find(is_passed).filter(|_| !reported.iter().any(is_cache));
        if let Some(reach) = reach {
            level.name = LevelName::Tlb(reach.level);
        }
    }
}

/// Assigns plateaus without a name to reported caches in order, at minimum cost.
fn name_caches(levels: &mut [Level], reported: &[(u8, u64)]) {
    let mut unnamed: Vec<&mut Level> =
        levels.iter_mut().filter(|level| level.name == LevelName::Unexplained).collect();
    let costs: Vec<Vec<f64>> = unnamed
        .iter()
        .map(|level| reported.iter().map(|&(_, bytes)| cost(level, bytes)).collect())
        .collect();
    for (level, cache) in unnamed.iter_mut().zip(cheapest(&costs, reported.len())) {
        if let Some((cache, bytes)) = cache.map(|at| reported[at]) {
            (level.name, level.reported_bytes) = (LevelName::Cache(cache), Some(bytes));
        }
    }
}

/// Returns the cost of taking a plateau for a cache, by the octaves between its middle and the
/// reported size.
fn cost(level: &Level, reported_bytes: u64) -> f64 {
    let middle = (level.from_bytes as f64 * level.to_bytes as f64).sqrt();
    let above = (middle / reported_bytes.max(1) as f64).log2();
    if above > 0.0 { COST_ABOVE * above } else { (-COST_BELOW * above).min(MOST_COST_BELOW) }
}

/// Returns the cache of each plateau in the cheapest assignment in order, from costs by plateau and
/// cache; `None` for a plateau that no cache explains.
fn cheapest(costs: &[Vec<f64>], caches: usize) -> Vec<Option<usize>> {
    // The cheapest assignment of the plateaus so far to the first caches, by their number.
    let mut best: Vec<(f64, Vec<Option<usize>>)> = vec![(0.0, Vec::new()); caches + 1];
    for of_plateau in costs {
        let with = |(cost, taken): &(f64, Vec<Option<usize>>), more: f64, cache| {
            (cost + more, [&taken[..], &[cache]].concat())
        };
        let mut next: Vec<(f64, Vec<Option<usize>>)> = Vec::with_capacity(caches + 1);
        for count in 0..=caches {
            let mut options = vec![with(&best[count], COST_UNEXPLAINED, None)];
            if let Some(last) = count.checked_sub(1) {
                options.push(with(&best[last], of_plateau[last], Some(last)));
                options.push(next[last].clone());
            }
            let least = options.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
            next.extend(least);
        }
        best = next;
    }
    best.pop().map_or_else(Vec::new, |(_, taken)| taken)
}

/// Joins the plateaus of one cache. The one that ends at the reach of a TLB level also stays a level.
fn joined(levels: Vec<Level>) -> Vec<Level> {
    let mut joined: Vec<Level> = Vec::with_capacity(levels.len());
    for mut level in levels {
        match joined.last_mut().filter(|before| before.is_one_with(&level)) {
            Some(before) if matches!(before.name, LevelName::Tlb(_)) => {
                let slowest_ns = core::mem::replace(&mut level.latency_ns, before.latency_ns);
                level.slowest_ns = Some(slowest_ns);
                joined.push(level);
            }
            Some(before) => before.join(&level),
            None => joined.push(level),
        }
    }
    joined
}

/// Adds each reported cache without a plateau that the curve shows as its flattest octave between
/// the neighbouring levels, or at least bounds.
fn add_hidden(
    levels: &mut Vec<Level>,
    reported: &[(u8, u64)],
    points: &[CurvePoint],
    floors: &LatencyCurve,
) {
    for &(cache, bytes) in reported {
        let is_before = |level: &Level| match level.name {
            LevelName::Cache(other) => other < cache,
            LevelName::Tlb(_) => level.to_bytes < bytes,
            LevelName::Unexplained | LevelName::Memory => false,
        };
        let at = levels.iter().take_while(|level| is_before(level)).count();
        let Some((all_before @ [.., before], [after, ..])) = levels.split_at_checked(at) else {
            continue;
        };
        if after.name == LevelName::Cache(cache) {
            continue;
        }
        let limits = [NEXT_RATIO * before.latency_ns, MEMORY_SHARE * after.latency_ns];
        let between = [before.to_bytes, after.from_bytes];
        let found = floors.flattest_octave(between, limits);
        let found = found.or_else(|| bounded(all_before, points, after));
        let Some(found) = found else { continue };
        let name = LevelName::Cache(cache);
        let hidden = Level { name, at_most: true, reported_bytes: Some(bytes), ..unnamed(found) };
        levels.insert(at, hidden);
    }
}

/// Returns the least upper bound of the latency of a cache between these levels, and the size that
/// gives it, if the bound shows a cache at all. The caches before serve at most the share of a chase
/// that fits into them, however lines are replaced, and no faster than the last that has a plateau;
/// the rest of its loads are as slow as this cache, or slower.
fn bounded(before: &[Level], points: &[CurvePoint], after: &Level) -> Option<numalab_stats::Level> {
    let last = before.last()?;
    let held_bytes = last.to_bytes.max(last.reported_bytes.unwrap_or(0));
    let served_ns = before.iter().rev().find(|level| !level.at_most)?.latency_ns;
    let is_inside = |size_bytes: u64| held_bytes < size_bytes && size_bytes < after.from_bytes;
    let bound = |point: &CurvePoint| {
        let share = held_bytes as f64 / point.size_bytes as f64;
        (point.figure.floor - share * served_ns) / (1.0 - share)
    };
    let inside = points.iter().filter(|point| is_inside(point.size_bytes));
    let bounds = inside.map(|point| (point.size_bytes, bound(point)));
    let least = bounds.min_by(|a, b| a.1.total_cmp(&b.1));
    let (size_bytes, latency_ns) = least?;
    let shows_one =
        NEXT_RATIO * last.latency_ns <= latency_ns && latency_ns < SERVED_SHARE * after.latency_ns;
    shows_one.then_some(numalab_stats::Level {
        latency_ns,
        from_bytes: size_bytes,
        to_bytes: size_bytes,
        capacity_bytes: None,
        undisturbed_bytes: None,
    })
}

/// Sets the ends of caches that are followed by a known level: the next reported cache or, after
/// the last one, memory.
fn end(levels: &mut [Level], reported: &[(u8, u64)], medians: &LatencyCurve) {
    for at in 0..levels.len() {
        let LevelName::Cache(cache) = levels[at].name else { continue };
        let wanted = reported.iter().map(|&(level, _)| level).find(|&level| level > cache);
        let next = levels.get(at + 1).filter(|next| match (next.name, wanted) {
            (LevelName::Cache(next), Some(wanted)) => next == wanted,
            (LevelName::Memory, None) | (LevelName::Tlb(_) | LevelName::Unexplained, _) => true,
            _ => false,
        });
        let next_ns = next.map(|next| next.latency_ns);
        let Level { from_bytes, at_most, .. } = levels[at];
        let latency_ns = levels[at].slowest_ns.unwrap_or(levels[at].latency_ns);
        let limit_ns = next_ns.filter(|_| !at_most).map(|next_ns| {
            (latency_ns + END_SHARE * (next_ns - latency_ns)).min(END_RATIO * latency_ns)
        });
        levels[at].capacity_bytes =
            limit_ns.and_then(|limit_ns| medians.passes_at(from_bytes, latency_ns, limit_ns));
    }
}
