//! The time of cells that share their buffers: a part of what is left of the budget.

use std::time::{Duration, Instant};

use numalab_record::Cell;

/// A cell gets at least so much time: fewer windows have no interval.
const LEAST_PER_CELL: Duration = Duration::from_millis(60);
/// A cell that is not precise after this long is on a machine too restless for it.
const MOST_PER_CELL: Duration = Duration::from_secs(3);
/// Part of the time that is left for later cells beyond their share: the last cell begun in
/// a share ends after it, and theirs may be the smaller ones.
const ASIDE: f64 = 0.25;

/// How long cells take in which nothing is sampled.
type Unsampled = fn(&[Cell]) -> Duration;

/// The time in which cells that share their buffers are begun. Where building and warming up
/// take longer than estimated, it is they that lose their last cells, not those after them.
#[derive(Debug)]
pub(crate) struct Share<'a> {
    cells: &'a [Cell],
    begun: Instant,
    time: Duration,
    unsampled: Unsampled,
}

impl<'a> Share<'a> {
    /// The part of `left` that `cells` need at least, as against all that come `later`, for
    /// which some is kept aside.
    pub fn of(
        left: Duration,
        cells: &'a [Cell],
        later: [&[Cell]; 2],
        unsampled: Unsampled,
    ) -> Self {
        let least = |cells| least_time(cells, unsampled).as_secs_f64();
        let (own, others) = (least(cells), later.map(least).iter().sum::<f64>());
        let aside = if others > 0.0 { ASIDE } else { 0.0 };
        let part = (1.0 - aside) * own / (own + others);
        Self { cells, begun: Instant::now(), time: left.mul_f64(part), unsampled }
    }

    /// How long the cell at `index` may be sampled: cells that were precise early, or took
    /// long to build, leave the later ones more or less.
    pub fn limit(&self, index: usize) -> Duration {
        let to_come = self.cells.get(index..).unwrap_or_default();
        let cells = u32::try_from(to_come.len().max(1)).unwrap_or(u32::MAX);
        let share = self.left().saturating_sub((self.unsampled)(to_come)) / cells;
        share.clamp(LEAST_PER_CELL, MOST_PER_CELL)
    }

    /// The same where all cells are sampled at once.
    pub fn limit_together(&self) -> Duration {
        self.limit(self.cells.len().saturating_sub(1))
    }

    /// Whether no more of the cells are begun.
    pub fn is_spent(&self) -> bool {
        self.left().is_zero()
    }

    fn left(&self) -> Duration {
        self.time.saturating_sub(self.begun.elapsed())
    }
}

/// What cells take if each is sampled as briefly as it may be.
fn least_time(cells: &[Cell], unsampled: Unsampled) -> Duration {
    let count = u32::try_from(cells.len()).unwrap_or(u32::MAX);
    unsampled(cells) + LEAST_PER_CELL.saturating_mul(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::latency::{LatencySpec, latency_cells};
    use crate::plan::estimate_unsampled;
    use numalab_host::base_pages;
    use numalab_record::{AccessPattern, Team, WorkerPlan};
    use numalab_topology::{CpuId, NodeId};

    fn cells(sizes: &[u64]) -> Vec<Cell> {
        let worker = WorkerPlan { cpu: CpuId(0), node: NodeId(0) };
        let (pattern, pages, team) = (AccessPattern::Random, base_pages(), Team::Serial);
        latency_cells(&[worker], sizes, LatencySpec { pattern, pages, team })
    }

    #[test]
    fn time_is_shared_by_what_cells_need_and_a_late_cell_has_the_least() {
        let (small, all) = (cells(&[4 << 10]), cells(&[4 << 10, 8 << 10, 16 << 10]));
        let left = Duration::from_secs(4);
        let share = Share::of(left, &all, [&small, &[]], estimate_unsampled);
        assert!((2.2..=2.3).contains(&share.left().as_secs_f64()), "{share:?}");
        assert!((0.7..=0.8).contains(&share.limit(0).as_secs_f64()), "{share:?}");
        assert!(share.limit(2) > share.limit(0) * 2 && !share.is_spent(), "{share:?}");
        let large = Share::of(left, &small, [&cells(&[1 << 30]), &[]], estimate_unsampled);
        assert!(large.left() < left / 4, "what is built is counted: {large:?}");
        let none = Share::of(Duration::ZERO, &all, [&small, &[]], estimate_unsampled);
        assert!(none.is_spent() && none.limit(0) == LEAST_PER_CELL);
    }
}
