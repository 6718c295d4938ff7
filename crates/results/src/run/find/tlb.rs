//! TLB levels, from loads of one line per page over a growing number of pages.
//!
//! The same number of lines next to each other fits the same caches, so the extra time of a load
//! that touches one page each is the cost of translation.

use std::collections::BTreeMap;

use numalab_record::{AccessPattern, CellId, LatencyCell, Metric, Pages, Team, WorkerPlan};
use numalab_stats::{Level, SizePoint, plateaus};
use serde::Serialize;

use super::cell::{CellSummary, Figure};
use super::proof::{huge_bytes, page_bytes};

/// Smallest block of page-local order, in bytes.
const LEAST_BLOCK_BYTES: u64 = 256 << 10;
const LINE_BYTES: u64 = 64;
/// A level ends where this share of the step to the next is reached, as for caches.
const END: f64 = 0.4;
/// Levels with costs closer than this ratio are one level.
const SAME_COST: f64 = 1.5;
/// Minimum translation cost over small pages, as a share of a cache hit, for a verdict on huge
/// pages.
const LEAST_COST: f64 = 0.3;
/// Share of the small pages' translation cost above which huge pages count as split. A guest's own
/// huge pages halve the two-dimensional walk; with huge pages on the host too, they cost nothing.
pub(super) const SPLIT_SHARE: f64 = 0.25;

/// Loads of one line in each of a number of pages; documents have their number and the cost of
/// translating each address, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "(u64, f64)")]
pub struct TlbPoint {
    pub pages: u64,
    pub figure: Figure,
    /// The latency of the same number of adjacent lines, in nanoseconds.
    pub cached_ns: f64,
    /// The id of the cell measured.
    pub cell: CellId,
}

impl TlbPoint {
    /// Returns the cost of translating the address, in nanoseconds.
    pub fn cost_ns(&self) -> f64 {
        (self.figure.median - self.cached_ns).max(0.0)
    }
}

impl From<TlbPoint> for (u64, f64) {
    fn from(point: TlbPoint) -> Self {
        (point.pages, point.cost_ns())
    }
}

/// One level of the TLB.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TlbLevel {
    /// The TLB level, from 1.
    pub level: u8,
    /// The largest measured number of pages that the level holds.
    pub holds_pages: u64,
    /// The next larger number of pages measured, which the level does not hold; `None` if there was
    /// none.
    pub passed_pages: Option<u64>,
    /// The extra cost of a hit compared with the first level, in nanoseconds.
    pub cost_ns: f64,
}

/// The TLB as one worker sees it, for pages of one size.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Tlb {
    /// The cpu and the node of its memory.
    pub worker: WorkerPlan,
    /// The page size of the buffer.
    pub pages: Pages,
    /// Distance between the lines in bytes: a page, or less, to test whether the TLB maps a huge
    /// page with one entry.
    pub apart_bytes: u64,
    /// The levels, first level first; a level that no number of pages exceeds is the last.
    pub levels: Vec<TlbLevel>,
    /// The extra cost of a load beyond the last level, in nanoseconds; `None` if no load went
    /// beyond it.
    pub beyond_ns: Option<f64>,
    /// The points, fewest pages first.
    #[serde(rename = "costs_ns")]
    #[schemars(with = "Vec<(u64, f64)>")]
    pub points: Vec<TlbPoint>,
}

impl Tlb {
    /// Returns `true` if there is one line per page. Transparent huge pages are as large as the
    /// machine's page tables make them: 2 MiB, or 512 MiB with base pages of 64 KiB.
    pub fn is_of_pages(&self) -> bool {
        match self.pages {
            Pages::Transparent => !Pages::Sized(self.apart_bytes).is_small(),
            Pages::Sized(bytes) => self.apart_bytes == bytes,
        }
    }

    /// Returns the point with the most pages.
    pub fn last(&self) -> Option<&TlbPoint> {
        self.points.last()
    }
}

/// Huge pages that the TLB treats as small ones.
#[derive(Clone, Debug)]
pub(super) struct Split<'a> {
    /// A chase in huge pages with lines a small page apart.
    pub huge: &'a TlbPoint,
    /// The same number of lines in small pages.
    pub small: &'a TlbPoint,
    pub pages: Pages,
    /// The page size of `small`.
    pub small_pages: Pages,
}

/// Finds huge pages with translations that cost a large part of what small pages' do, although the
/// TLB could hold all of them.
pub(super) fn split(tlbs: &[Tlb]) -> Option<Split<'_>> {
    tlbs.iter().filter(|tlb| !tlb.is_of_pages()).find_map(|tlb| {
        let huge = tlb.last()?;
        let of_base = |base: &&Tlb| base.worker == tlb.worker && base.pages.is_small();
        let base = tlbs.iter().find(of_base)?;
        let small = base.points.iter().find(|small| small.pages == huge.pages)?;
        let is_dear = small.cost_ns() > LEAST_COST * small.cached_ns;
        let split = Split { huge, small, pages: tlb.pages, small_pages: base.pages };
        (is_dear && huge.cost_ns() > SPLIT_SHARE * small.cost_ns()).then_some(split)
    })
}

/// The sizes between which a walk exceeds the reach of a TLB level, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reach {
    pub level: u8,
    /// The largest size still covered.
    pub from_bytes: u64,
    /// The smallest size no longer covered.
    pub to_bytes: u64,
}

/// Returns the sizes at which walks in a given order over given pages exceed the reach of TLB
/// levels. Walks that stay within a block at a time need only the block's pages: a single one if it
/// is huge and not split.
pub(super) fn reaches(tlbs: &[Tlb], pattern: AccessPattern, pages: Pages) -> Vec<Reach> {
    let split = split(tlbs).filter(|split| split.pages == pages);
    let of_pages = |tlb: &&Tlb| tlb.pages == pages && tlb.is_of_pages();
    let probed_bytes = tlbs.iter().find(of_pages).map(|tlb| tlb.apart_bytes);
    let block_bytes = match pattern {
        AccessPattern::PageLocal => {
            probed_bytes.unwrap_or_else(|| page_bytes(pages)).max(LEAST_BLOCK_BYTES)
        }
        _ => u64::MAX,
    };
    let pages = match (split, pattern) {
        (Some(split), _) => split.small_pages,
        (None, AccessPattern::PageLocal) if huge_bytes(pages).is_some() => return Vec::new(),
        (None, _) => pages,
    };
    let probed = tlbs.iter().find(|tlb| tlb.pages == pages && tlb.is_of_pages());
    let Some(tlb) = probed else { return Vec::new() };
    let reach = |level: &TlbLevel| {
        Some(Reach {
            level: level.level,
            from_bytes: level.holds_pages * tlb.apart_bytes,
            to_bytes: level.passed_pages? * tlb.apart_bytes,
        })
    };
    let is_outgrown = |reach: &Reach| reach.from_bytes < block_bytes;
    tlb.levels.iter().filter_map(reach).filter(is_outgrown).collect()
}

/// Returns the TLB of every worker and page size with cells of one line per page.
pub(super) fn tlbs(cells: &[CellSummary<'_>]) -> Vec<Tlb> {
    let mut groups: BTreeMap<_, BTreeMap<u64, TlbPoint>> = BTreeMap::new();
    let mut references: BTreeMap<WorkerPlan, Dense> = BTreeMap::new();
    for (cell, latency, figure) in serial(cells) {
        let AccessPattern::OneLinePer(apart_bytes) = latency.pattern else { continue };
        let worker = latency.worker;
        let dense = references.entry(worker).or_insert_with(|| Dense::of(cells, worker));
        let pages = latency.size_bytes / apart_bytes;
        let Some(cached_ns) = dense.latency_ns(pages * LINE_BYTES) else { continue };
        let cell = cell.cell.id.clone();
        let points = groups.entry((worker, latency.pages, apart_bytes)).or_default();
        points.insert(pages, TlbPoint { pages, figure: figure.clone(), cached_ns, cell });
    }
    let tlb = |((worker, pages, apart_bytes), points): (_, BTreeMap<_, TlbPoint>)| {
        let points: Vec<TlbPoint> = points.into_values().collect();
        let (levels, beyond_ns) = levels(&points)?;
        Some(Tlb { worker, pages, apart_bytes, points, levels, beyond_ns })
    };
    groups.into_iter().filter_map(tlb).collect()
}

fn serial<'a>(
    cells: &'a [CellSummary<'a>],
) -> impl Iterator<Item = (&'a CellSummary<'a>, &'a LatencyCell, &'a Figure)> {
    cells.iter().filter_map(move |cell| {
        let latency = cell.latency()?;
        let figure = cell.figure(Metric::Latency)?;
        (latency.team == Team::Serial).then_some((cell, latency, figure))
    })
}

/// Latency by size of adjacent lines, from the sweep with the most sizes.
struct Dense(Vec<(u64, f64)>);

impl Dense {
    fn of(cells: &[CellSummary<'_>], worker: WorkerPlan) -> Self {
        let mut sweeps: BTreeMap<_, BTreeMap<u64, f64>> = BTreeMap::new();
        for (_, latency, figure) in serial(cells) {
            let is_dense =
                matches!(latency.pattern, AccessPattern::PageLocal | AccessPattern::Random);
            if is_dense && latency.worker == worker {
                let sweep = sweeps.entry((latency.pattern, latency.pages)).or_default();
                sweep.insert(latency.size_bytes, figure.median);
            }
        }
        let most = sweeps.into_values().max_by_key(BTreeMap::len).unwrap_or_default();
        Self(most.into_iter().collect())
    }

    /// Returns the latency at a size, interpolated between logarithms; below the smallest size, the
    /// latency of the smallest.
    #[expect(clippy::cast_precision_loss, reason = "sizes of memory")]
    fn latency_ns(&self, bytes: u64) -> Option<f64> {
        let above = self.0.iter().position(|(size, _)| *size >= bytes)?;
        let (high, high_ns) = self.0[above];
        let Some(&(low, low_ns)) = above.checked_sub(1).and_then(|at| self.0.get(at)) else {
            return Some(high_ns);
        };
        let share = (bytes as f64 / low as f64).ln() / (high as f64 / low as f64).ln();
        Some((low_ns.ln() + share * (high_ns / low_ns).ln()).exp())
    }
}

/// Returns the levels and the extra cost beyond them; `None` if the curve shows none.
fn levels(points: &[TlbPoint]) -> Option<(Vec<TlbLevel>, Option<f64>)> {
    let hit_ns = points.first()?.cached_ns;
    let of_pages = |point: &TlbPoint| SizePoint {
        size_bytes: point.pages,
        latency_ns: hit_ns + point.cost_ns(),
    };
    let curve: Vec<SizePoint> = points.iter().map(of_pages).collect();
    let found = plateaus(&curve).ok()?;
    if found.first()?.latency_ns > (1.0 + LEAST_COST) * hit_ns {
        // The level holds fewer pages than any number measured.
        return Some((Vec::new(), Some(found.last()?.latency_ns - hit_ns)));
    }
    let found = joined(&found, hit_ns);
    let last_ns = curve.last()?.latency_ns;
    let mut levels = Vec::new();
    for (at, plateau) in found.iter().enumerate() {
        let is_last = at + 1 == found.len();
        if is_last && plateau.capacity_bytes.is_none() && at > 0 {
            return Some((levels, Some(plateau.latency_ns - hit_ns)));
        }
        let next_ns = found.get(at + 1).map_or(last_ns, |next| next.latency_ns);
        let limit_ns = plateau.latency_ns + END * (next_ns - plateau.latency_ns);
        let on_it = |point: &SizePoint| {
            point.size_bytes <= plateau.to_bytes || point.latency_ns <= limit_ns
        };
        let passed = curve.iter().position(|point| !on_it(point));
        let passed = passed.filter(|_| plateau.capacity_bytes.is_some());
        let held = passed.map_or(curve.len(), |passed| passed).checked_sub(1)?;
        levels.push(TlbLevel {
            level: u8::try_from(at + 1).unwrap_or(u8::MAX),
            holds_pages: curve[held].size_bytes,
            passed_pages: passed.map(|passed| curve[passed].size_bytes),
            cost_ns: plateau.latency_ns - hit_ns,
        });
    }
    let is_passed = levels.last().is_some_and(|level| level.passed_pages.is_some());
    Some((levels, is_passed.then_some(last_ns - hit_ns)))
}

/// Joins plateaus with nearly the same cost: pages that conflict in the sets of one level raise its
/// cost before it is full.
fn joined(found: &[Level], hit_ns: f64) -> Vec<Level> {
    let mut joined: Vec<Level> = Vec::new();
    for next in found {
        match joined.last_mut() {
            Some(last) if next.latency_ns - hit_ns < SAME_COST * (last.latency_ns - hit_ns) => {
                *last = Level { latency_ns: last.latency_ns, from_bytes: last.from_bytes, ..*next };
            }
            _ => joined.push(*next),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use numalab_topology::{CpuId, NodeId};

    #[test]
    fn a_level_with_a_cost_that_rises_by_a_third_is_one_level() {
        let costs = [0.0, 0.0, 0.0, 3.0, 3.0, 4.0, 4.0, 20.0, 21.0, 21.0];
        let point = |(bit, cost_ns): (u32, f64)| TlbPoint {
            pages: 1 << bit,
            figure: figure(1.2 + cost_ns),
            cached_ns: 1.2,
            cell: CellId(String::new()),
        };
        let points: Vec<TlbPoint> = (4..).zip(costs).map(point).collect();
        let (found, beyond_ns) = levels(&points).expect("levels");
        let held: Vec<u64> = found.iter().map(|level| level.holds_pages).collect();
        assert_eq!(held, [64, 1024], "{found:?}");
        assert!((beyond_ns.unwrap() - 21.0).abs() < 0.1, "{beyond_ns:?}");
    }

    fn figure(ns: f64) -> Figure {
        Figure { median: ns, floor: ns, interval: None, effective_size: None, bursts: None }
    }

    fn tlb(pages: Pages, costs_ns: [f64; 3]) -> Tlb {
        let point = |(pages, cost_ns): (u64, f64)| TlbPoint {
            pages,
            figure: figure(1.2 + cost_ns),
            cached_ns: 1.2,
            cell: CellId(String::new()),
        };
        let level = |level, holds_pages, cost_ns| TlbLevel {
            level,
            holds_pages,
            passed_pages: Some(2 * holds_pages),
            cost_ns,
        };
        Tlb {
            worker: WorkerPlan { cpu: CpuId(0), node: NodeId(0) },
            pages,
            apart_bytes: 4096,
            points: [64, 2048, 8192].into_iter().zip(costs_ns).map(point).collect(),
            levels: vec![level(1, 64, 0.0), level(2, 2048, 1.8)],
            beyond_ns: Some(costs_ns[2]),
        }
    }

    #[test]
    fn lines_a_transparent_huge_page_apart_are_of_pages_whatever_its_size_is() {
        let apart = |pages, apart_bytes| Tlb { apart_bytes, ..tlb(pages, [0.0; 3]) }.is_of_pages();
        for (bytes, expected) in
            [(4 << 10, false), (64 << 10, false), (2 << 20, true), (512 << 20, true)]
        {
            assert_eq!(apart(Pages::Transparent, bytes), expected, "{bytes}");
        }
        assert!(apart(Pages::BASE_4K, 4 << 10) && !apart(Pages::HUGE_2M, 4 << 10));
    }

    #[test]
    fn an_order_within_blocks_outgrows_only_the_levels_that_a_block_does() {
        let small = tlb(Pages::BASE_4K, [0.0, 1.8, 18.0]);
        let levels = |tlbs: &[Tlb], pattern, pages| -> Vec<u8> {
            reaches(tlbs, pattern, pages).iter().map(|reach| reach.level).collect()
        };
        let (local, random) = (AccessPattern::PageLocal, AccessPattern::Random);
        let split = [small.clone(), tlb(Pages::Transparent, [0.0, 1.7, 9.0])];
        assert_eq!(levels(&split, local, Pages::Transparent), [1]);
        assert_eq!(levels(&split, random, Pages::Transparent), [1, 2]);
        assert!(levels(&split, local, Pages::BASE_4K).is_empty());
        let whole = [small, tlb(Pages::Transparent, [0.0; 3])];
        assert!(levels(&whole, local, Pages::Transparent).is_empty());
        assert_eq!(levels(&whole, random, Pages::BASE_4K), [1, 2]);
    }
}
