//! A plan as a whole: which cells are run together, how long it takes, what the machine refuses.

use std::time::Duration;

use numalab_record::Cell;

use crate::error::MeasureError;
use crate::kind::measurement;

/// The cells in order, in parts whose cells share their buffers and are run together.
pub(crate) fn shared_runs(plan: &[Cell]) -> impl Iterator<Item = &[Cell]> {
    let mut rest = plan;
    std::iter::from_fn(move || {
        let first = measurement(&rest.first()?.experiment);
        let others = rest.iter().skip(1);
        let sharing = others.take_while(|cell| first.shares_buffers(&cell.experiment)).count();
        let (together, later) = rest.split_at(1 + sharing);
        rest = later;
        Some(together)
    })
}

/// Time for `plan`, with buffers and cycles that are shared counted once.
#[must_use]
pub fn estimate_plan(plan: &[Cell]) -> Duration {
    let sampling = |cell: &Cell| measurement(&cell.experiment).sampling();
    estimate_unsampled(plan) + plan.iter().map(sampling).sum::<Duration>()
}

/// Time of a plan in which nothing is sampled: filling buffers, building cycles, warming up.
pub(crate) fn estimate_unsampled(plan: &[Cell]) -> Duration {
    let building = |cells: &[Cell]| measurement(&cells[0].experiment).building(cells);
    let warm_up = |cell: &Cell| measurement(&cell.experiment).warm_up();
    shared_runs(plan).map(building).sum::<Duration>() + plan.iter().map(warm_up).sum::<Duration>()
}

/// Fails as a run of `plan` would in which no cell can be measured: for too much memory, pages
/// that are not reserved, an instruction set or an order that there is not. Memory is asked
/// for and given back untouched.
///
/// # Errors
/// The first cell's [`MeasureError`], if every cell has one.
pub fn check_plan(plan: &[Cell]) -> Result<(), MeasureError> {
    let mut first = None;
    for together in shared_runs(plan) {
        match measurement(&together[0].experiment).check(together) {
            Ok(()) => return Ok(()),
            Err(error) => first = first.or(Some(error)),
        }
    }
    first.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests;
