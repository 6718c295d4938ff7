//! Divides the rest of the budget among cells that share their buffers.

use std::time::Duration;

use numalab_record::Cell;

use crate::context::Budget;

/// Minimum time of a cell: fewer windows give no interval.
const LEAST_PER_CELL: Duration = Duration::from_millis(60);
/// Maximum time of a cell: if it is not precise by then, the machine is too noisy.
const MOST_PER_CELL: Duration = Duration::from_secs(3);
/// Part of the remaining time that is reserved for later cells beyond their share. The last cell
/// begun in a share ends after it, and later shares may have the shorter cells.
const ASIDE: f64 = 0.25;

/// Estimates the time of cells without sampling.
type Unsampled = fn(&[Cell]) -> Duration;

/// The time in which cells that share their buffers are begun. If building and warming up take
/// longer than estimated, these cells lose their last ones, not the cells after them.
#[derive(Debug)]
pub(crate) struct Share<'a> {
    cells: &'a [Cell],
    begun: Budget,
    time: Duration,
    unsampled: Unsampled,
}

impl<'a> Share<'a> {
    /// Returns the part of `left` for `cells`, in proportion to the least time of these and all
    /// `later` cells, after a reserve for the later ones. The part begins with `begun`.
    pub fn of(
        (left, begun): (Duration, Budget),
        cells: &'a [Cell],
        later: [&[Cell]; 2],
        unsampled: Unsampled,
    ) -> Self {
        let least = |cells| least_time(cells, unsampled).as_secs_f64();
        let (own, others) = (least(cells), later.map(least).iter().sum::<f64>());
        let aside = if others > 0.0 { ASIDE } else { 0.0 };
        let part = (1.0 - aside) * own / (own + others);
        Self { cells, begun, time: left.mul_f64(part), unsampled }
    }

    /// Returns the sampling time of the cell at `index`, which depends on the time that earlier
    /// cells and building left.
    pub fn limit(&self, index: usize) -> Duration {
        let to_come = self.cells.get(index..).unwrap_or_default();
        let cells = u32::try_from(to_come.len().max(1)).unwrap_or(u32::MAX);
        let share = self.left().saturating_sub((self.unsampled)(to_come)) / cells;
        // At least the time that an interval takes, even if the share is used up.
        share.clamp(LEAST_PER_CELL, MOST_PER_CELL)
    }

    /// Returns the sampling time if all cells are sampled at once.
    pub fn limit_together(&self) -> Duration {
        // All are sampled at once, so each gets all of the remaining time, as the last cell would.
        self.limit(self.cells.len().saturating_sub(1))
    }

    /// Reports whether no more of the cells are begun.
    pub fn is_spent(&self) -> bool {
        self.left().is_zero()
    }

    fn left(&self) -> Duration {
        self.time.saturating_sub(self.begun.elapsed())
    }
}

/// Returns the time of the cells if each is sampled as briefly as possible.
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
    fn time_is_shared_by_need_and_a_late_cell_has_the_least() {
        let (small, all) = (cells(&[4 << 10]), cells(&[4 << 10, 8 << 10, 16 << 10]));
        let left = Duration::from_secs(4);
        let begun = Budget::begin(|| 0);
        let share = Share::of((left, begun), &all, [&small, &[]], estimate_unsampled);
        assert!((2.24..=2.26).contains(&share.time.as_secs_f64()), "{share:?}");
        assert!(share.limit(0) * 3 <= share.time && share.limit(0) * 9 > share.time, "{share:?}");
        assert!(share.limit(2) > share.limit(0) * 2 && !share.is_spent(), "{share:?}");
        let large = Share::of((left, begun), &small, [&cells(&[1 << 30]), &[]], estimate_unsampled);
        assert!(large.time < left / 4, "what is built is counted: {large:?}");
        let none = Share::of((Duration::ZERO, begun), &all, [&small, &[]], estimate_unsampled);
        assert!(none.is_spent() && none.limit(0) == LEAST_PER_CELL);
    }
}
