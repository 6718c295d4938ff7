//! The tails of runs: windows that last far longer than their run's median.

use numalab_stats::{Criteria, Direction, Sample, compare_in_order, extremes};

use super::Tolerance;
use super::cells::MatchedCell;
use crate::shape::Tail;

/// Returns where the tails of all cells of a kind differ between the sides, in parts of each run's
/// median, so that neither a cell's level nor a run's is a difference.
///
/// A difference is shown only if it does not rest on one run: it must also show when any one run is
/// left out.
pub(super) fn tail(
    cells: &[&MatchedCell<'_>],
    direction: Direction,
    tolerance: Tolerance,
) -> Option<Tail> {
    let runs = [0, 1].map(|side| cells.first().map_or(0, |cell| cell.windows[side].len()));
    let without = |left_out: Option<(usize, usize)>| {
        let of_side = |side: usize| {
            let kept = (0..runs[side]).filter(|&run| left_out != Some((side, run)));
            let windows =
                kept.flat_map(|run| cells.iter().flat_map(move |c| &c.windows[side][run]));
            Sample::new(windows.copied().collect::<Vec<f64>>()).ok()
        };
        let criteria = Criteria { margin: tolerance.margin(), ..Criteria::new(direction) };
        tail_of([of_side(0)?, of_side(1)?], &criteria)
    };
    let all = without(None)?;
    let mut each = [0, 1].into_iter().flat_map(|side| (0..runs[side]).map(move |run| (side, run)));
    let is_same = |other: Tail| other.is_shown && other.is_worse == all.is_worse;
    let is_shown = all.is_shown && each.all(|run| without(Some(run)).is_some_and(is_same));
    Some(Tail { is_shown, ..all })
}

/// Returns where the tails of two samples differ, each with its values in the order taken.
pub(crate) fn tail_of([baseline, candidate]: [Sample; 2], criteria: &Criteria) -> Option<Tail> {
    let (_, order) = compare_in_order(&baseline, &candidate, criteria);
    let worth = order.effective_size / (baseline.len() + candidate.len()) as f64;
    let extremes = extremes(&baseline, &candidate, criteria.direction, worth);
    Tail::of(&extremes, criteria.direction, criteria.margin)
}
