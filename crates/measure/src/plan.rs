//! Plans as a whole: cells that are run together, their time, and the machine's limits.

use std::time::Duration;

use numalab_record::Cell;

use crate::error::MeasureError;
use crate::kind::measurement;

/// Splits the cells, in order, into parts that share their buffers and are run together.
pub(crate) fn shared_runs(plan: &[Cell]) -> impl Iterator<Item = &[Cell]> {
    let mut rest = plan;
    std::iter::from_fn(move || {
        let first = measurement(&rest.first()?.experiment);
        let others = rest.iter().skip(1);
        // Only neighbours are run together, so that the order of the plan is kept.
        let sharing = others.take_while(|cell| first.shares_buffers(&cell.experiment)).count();
        let (together, later) = rest.split_at(1 + sharing);
        rest = later;
        Some(together)
    })
}

/// Estimates the time of `plan`, counting shared buffers and cycles once.
pub fn estimate_plan(plan: &[Cell]) -> Duration {
    let sampling = |cell: &Cell| measurement(&cell.experiment).sampling();
    estimate_unsampled(plan) + plan.iter().map(sampling).sum::<Duration>()
}

/// Returns the usual time limit for a plan on a disturbed machine.
pub fn usual_budget(plan: &[Cell]) -> Duration {
    const LEAST: Duration = Duration::from_secs(20);
    (estimate_plan(plan) * 4).max(LEAST)
}

/// Estimates the time of a plan without sampling: filling buffers, building cycles, warming up.
pub(crate) fn estimate_unsampled(plan: &[Cell]) -> Duration {
    let building = |cells: &[Cell]| measurement(&cells[0].experiment).building(cells);
    let warm_up = |cell: &Cell| measurement(&cell.experiment).warm_up();
    shared_runs(plan).map(building).sum::<Duration>() + plan.iter().map(warm_up).sum::<Duration>()
}

/// Fails if no cell of `plan` can be measured, for lack of memory, reserved pages, an instruction
/// set or an order. Memory is mapped and unmapped untouched.
///
/// # Errors
/// The first cell's [`MeasureError`], if every cell has one.
pub fn check_plan(plan: &[Cell]) -> Result<(), MeasureError> {
    let mut first = None;
    for together in shared_runs(plan) {
        match measurement(&together[0].experiment).check(together) {
            // One possible cell suffices: the run records the failures of the others.
            Ok(()) => return Ok(()),
            Err(error) => first = first.or(Some(error)),
        }
    }
    first.map_or(Ok(()), Err)
}

/// Returns the number of cells that cannot be measured, with the reason for the first; `None` if all can
/// be.
pub fn impossible_cells(plan: &[Cell]) -> Option<(usize, MeasureError)> {
    let check = |cell: &Cell| measurement(&cell.experiment).check(std::slice::from_ref(cell)).err();
    let mut errors = plan.iter().filter_map(check);
    let first = errors.next()?;
    Some((1 + errors.count(), first))
}

#[cfg(test)]
mod tests;
