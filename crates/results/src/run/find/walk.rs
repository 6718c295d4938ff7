//! What the page walk costs, apart from memory itself.

use numalab_record::{AccessPattern, Metric, Pages, WorkerPlan};
use numalab_stats::Interval;

use super::cell::{CellSummary, Figure};
use super::matrix::LatencyMatrix;

/// The cost of one page walk of one worker at one size.
#[derive(Clone, Debug, PartialEq)]
pub struct PageWalk {
    /// The worker.
    pub worker: WorkerPlan,
    /// The buffer's length in bytes.
    pub size_bytes: u64,
    /// The pages.
    pub pages: Pages,
    /// Latency when the walk is needed: random over the whole buffer, in nanoseconds.
    pub random: Figure,
    /// Latency with TLB hits: random within a page, in nanoseconds.
    pub page_local: Figure,
    /// The difference of the two medians in nanoseconds.
    pub cost_ns: f64,
    /// From the smallest to the largest difference that the two intervals allow:
    /// wider than a 95 % interval of the difference.
    pub interval: Option<Interval>,
}

/// A walk matters to a matrix if it is this share of the lowest latency in it.
const MATTERS: f64 = 0.05;

impl LatencyMatrix {
    /// The walk of pages as its loads use them, where that is much beside what they take: in
    /// random order it is part of each load, in page-local order of none.
    #[must_use]
    pub fn walk_beside<'a>(&self, walks: &'a [PageWalk]) -> Option<&'a PageWalk> {
        let least_ns = MATTERS * self.by_cpu.range()?.lo;
        walks.iter().find(|walk| walk.pages == self.pages && walk.cost_ns >= least_ns)
    }
}

/// The walk of every worker and kind of page at the largest size at which both
/// orders were measured.
#[must_use]
pub fn page_walks(cells: &[CellSummary<'_>]) -> Vec<PageWalk> {
    let mut walks: Vec<PageWalk> = Vec::new();
    for cell in cells {
        let Some(walk) = page_walk(cell, cells) else {
            continue;
        };
        let same = |other: &&mut PageWalk| other.worker == walk.worker && other.pages == walk.pages;
        match walks.iter_mut().find(same) {
            Some(other) if other.size_bytes < walk.size_bytes => *other = walk,
            Some(_) => {}
            None => walks.push(walk),
        }
    }
    walks.sort_by_key(|walk| (walk.worker, walk.pages));
    walks
}

/// The walk whose page-local cell is `cell`.
fn page_walk(cell: &CellSummary<'_>, cells: &[CellSummary<'_>]) -> Option<PageWalk> {
    let local = cell.latency()?;
    if local.pattern != AccessPattern::PageLocal {
        return None;
    }
    let page_local = cell.figure(Metric::Latency)?.clone();
    let mut wanted = local.clone();
    wanted.pattern = AccessPattern::Random;
    let random = cells
        .iter()
        .filter(|other| other.latency() == Some(&wanted))
        .find_map(|other| other.figure(Metric::Latency))?
        .clone();
    let interval = random
        .interval
        .zip(page_local.interval)
        .map(|(random, local)| Interval { lo: random.lo - local.hi, hi: random.hi - local.lo });
    Some(PageWalk {
        worker: local.worker,
        size_bytes: local.size_bytes,
        pages: local.pages,
        cost_ns: random.median - page_local.median,
        random,
        page_local,
        interval,
    })
}
