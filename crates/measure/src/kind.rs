//! The kinds of measurement: each file below plans the cells of one and runs them.
//!
//! A new one is a file with its `Measurement`, its row in `measurement` and, if `numalab measure`
//! is to have it, in `MEASURED_BEYOND_CACHES`.

pub mod bandwidth;
pub mod c2c;
mod core;
mod frames;
pub mod latency;
pub mod loaded;

use std::time::Duration;

use numalab_host::{MemoryLimit, Root};
use numalab_record::{Cell, Experiment};

use crate::context::MeasureContext;
use crate::error::MeasureError;
use crate::measured::Give;
use crate::share::Share;
use crate::survey::Survey;

/// Touching and zeroing memory, per GiB.
const TOUCH_PER_GIB: Duration = Duration::from_millis(250);
/// Rounds of all workers together.
const ROUNDS: Duration = Duration::from_millis(300);
/// Windows of a cell until 1 %, warm-up apart.
const WINDOWS: Duration = Duration::from_millis(120);

/// Cells that share their buffers and are run together.
#[derive(Clone, Copy)]
pub(crate) struct Together<'a> {
    pub context: &'a MeasureContext,
    pub cells: &'a [Cell],
    /// Their share of the time.
    pub share: &'a Share<'a>,
}

/// What planning and running know of an experiment by its kind.
pub(crate) trait Measurement {
    /// Whether `other` works on the same buffers, so that both are run together.
    fn shares_buffers(&self, _other: &Experiment) -> bool {
        false
    }

    /// Runs cells of which the first is this one's, and gives what each measured.
    ///
    /// # Errors
    /// What concerns the buffers of all of them; a cell's own failure is its outcome.
    fn run(&self, together: Together<'_>, give: Give<'_>) -> Result<(), MeasureError>;

    /// Fails as a run of `cells` would for what this machine refuses: too much memory, pages
    /// that are not reserved, instructions or an order that there are not.
    ///
    /// # Errors
    /// The first [`MeasureError`] of them.
    fn check(&self, _cells: &[Cell]) -> Result<(), MeasureError> {
        Ok(())
    }

    /// How long it takes to fill the buffers that `cells` share and to build what lies in them.
    fn building(&self, _cells: &[Cell]) -> Duration {
        Duration::ZERO
    }

    /// How long it takes to warm up, the buffers being ready.
    fn warm_up(&self) -> Duration {
        Duration::ZERO
    }

    /// How long its windows take.
    fn sampling(&self) -> Duration {
        WINDOWS / 4
    }
}

/// The experiment as its kind measures it.
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

/// What `numalab measure` takes of a kind, at a size in bytes that no cache holds.
type BeyondCaches = fn(&Survey<'_>, u64) -> Vec<Cell>;

/// The kinds in the order in which `numalab measure` takes them.
pub(crate) const MEASURED_BEYOND_CACHES: [BeyondCaches; 4] =
    [latency::beyond_caches, bandwidth::beyond_caches, loaded::beyond_caches, c2c::beyond_caches];

/// Those of these cells that are of one kind, with what the kind says of them.
fn cells_of<'a, T>(cells: &'a [Cell]) -> Vec<(&'a Cell, &'a T)>
where
    &'a T: TryFrom<&'a Experiment>,
{
    cells.iter().filter_map(|cell| Some((cell, cell.experiment.cell()?))).collect()
}

/// The time to fill buffers of so many bytes.
fn filling(bytes: u64) -> Duration {
    per_gib(TOUCH_PER_GIB, bytes)
}

fn per_gib(time: Duration, bytes: u64) -> Duration {
    time.mul_f64(bytes as f64 / (1_u64 << 30) as f64)
}

/// Whether so much memory may be taken for all buffers that are alive at once.
fn check_sum(bytes: u64) -> Result<(), MeasureError> {
    Ok(MemoryLimit::read(&Root::live())?.check(bytes, None)?)
}

#[cfg(test)]
mod tests;
