//! Cost of page walks, separate from memory latency.

use numalab_record::{AccessPattern, Metric, Pages, WorkerPlan};
use numalab_stats::Interval;
use serde::Serialize;

use super::cell::{CellSummary, Figure};
use super::matrix::LatencyMatrix;

/// Page-walk cost of one worker at one buffer size.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PageWalk {
    /// The cpu and the node of its memory.
    pub worker: WorkerPlan,
    /// The page size of the buffer.
    pub pages: Pages,
    /// The buffer's length in bytes.
    pub size_bytes: u64,
    /// The latency with page walks (random over the whole buffer), in nanoseconds.
    #[serde(skip)]
    pub random: Figure,
    /// The latency with TLB hits (random within a page), in nanoseconds.
    #[serde(skip)]
    pub page_local: Figure,
    /// The extra latency of a random load over a load within one page, in nanoseconds.
    pub cost_ns: f64,
    /// The smallest and largest difference that the two intervals allow; wider than a 95 % interval
    /// of the difference.
    #[serde(skip)]
    pub interval: Option<Interval>,
}

/// Share of a matrix's lowest latency from which a page walk is worth mentioning.
const MATTERS: f64 = 0.05;

impl LatencyMatrix {
    /// Returns the walk over this matrix's pages if its cost is a noticeable share of the
    /// latencies. It is part of every load in random order, and of none in page-local order.
    pub fn noticeable_walk<'a>(&self, walks: &'a [PageWalk]) -> Option<&'a PageWalk> {
        let least_ns = MATTERS * self.by_cpu.range()?.lo;
        walks.iter().find(|walk| walk.pages == self.pages && walk.cost_ns >= least_ns)
    }
}

/// Returns the walk of every worker and page size, at the largest buffer size measured in both
/// orders.
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

/// Returns the walk that has `cell` as its page-local cell.
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
