//! The kinds of measurement: each module below plans the cells of one kind and runs them.
//!
//! A new kind is a module with its `Measurement`, its row in `measurement` and, if `numalab
//! measure` includes it, in `MEASURED_BEYOND_CACHES`.

pub mod bandwidth;
pub mod c2c;
mod core;
mod frames;
pub mod latency;
pub mod loaded;

use std::time::Duration;

use numalab_record::{Cell, Experiment};

use crate::context::MeasureContext;
use crate::error::MeasureError;
use crate::measured::Give;
use crate::share::Share;
use crate::survey::Survey;

/// Time to touch and zero one GiB.
const TOUCH_PER_GIB: Duration = Duration::from_millis(250);
/// Time of the rounds of all workers together.
const ROUNDS: Duration = Duration::from_millis(300);
/// Time of a cell's windows to reach 1 %, without warm-up.
const WINDOWS: Duration = Duration::from_millis(120);

/// Cells that share their buffers and are run together.
#[derive(Clone, Copy)]
pub(crate) struct Together<'a> {
    pub context: &'a MeasureContext,
    pub cells: &'a [Cell],
    /// The share of the time for these cells.
    pub share: &'a Share<'a>,
}

/// The plan and execution of one kind of experiment.
pub(crate) trait Measurement {
    /// Reports whether `other` uses the same buffers, so that both are run together.
    fn shares_buffers(&self, _other: &Experiment) -> bool {
        false
    }

    /// Runs cells, the first of which is this one's, and passes each result to `give`.
    ///
    /// # Errors
    /// Failures of the shared buffers; a cell's own failure is its outcome.
    fn run(&self, together: Together<'_>, give: Give<'_>) -> Result<(), MeasureError>;

    /// Fails as a run of `cells` would if the machine lacks the memory, the reserved pages, the
    /// instruction set or the order.
    ///
    /// # Errors
    /// The first such [`MeasureError`].
    fn check(&self, _cells: &[Cell]) -> Result<(), MeasureError> {
        Ok(())
    }

    /// Returns the time to fill the buffers that `cells` share and to build cycles in them.
    fn building(&self, _cells: &[Cell]) -> Duration {
        Duration::ZERO
    }

    /// Returns the time to warm up after the buffers have been built.
    fn warm_up(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns the time of its windows.
    fn sampling(&self) -> Duration {
        WINDOWS / 4
    }
}

/// Returns the implementation for an experiment's kind.
pub(crate) fn measurement(experiment: &Experiment) -> &dyn Measurement {
    match experiment {
        Experiment::Latency(cell) => cell,
        Experiment::Bandwidth(cell) => cell,
        Experiment::Loaded(cell) => cell,
        Experiment::C2c(cell) => cell,
        Experiment::Core(cell) => cell,
        Experiment::Frames(cell) => cell,
    }
}

/// Plans the cells of a kind in `numalab measure`, at a size in bytes beyond every cache.
type BeyondCaches = fn(&Survey<'_>, u64) -> Vec<Cell>;

/// The kinds in the order in which `numalab measure` runs them.
pub(crate) const MEASURED_BEYOND_CACHES: [BeyondCaches; 4] =
    [latency::beyond_caches, bandwidth::beyond_caches, loaded::beyond_caches, c2c::beyond_caches];

/// Returns the cells of one kind, with their kind's own description.
fn cells_of<'a, T>(cells: &'a [Cell]) -> Vec<(&'a Cell, &'a T)>
where
    &'a T: TryFrom<&'a Experiment>,
{
    cells.iter().filter_map(|cell| Some((cell, cell.experiment.cell()?))).collect()
}

/// Returns the time to fill buffers of `bytes`.
fn filling(bytes: u64) -> Duration {
    per_gib(TOUCH_PER_GIB, bytes)
}

fn per_gib(time: Duration, bytes: u64) -> Duration {
    time.mul_f64(bytes as f64 / (1_u64 << 30) as f64)
}

#[cfg(test)]
mod tests;
