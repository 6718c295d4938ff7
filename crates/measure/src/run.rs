//! Running cells: one module for each kind, all giving [`Finished`] cells with samples.

mod bandwidth;
mod c2c;
pub(crate) mod chase;
mod core;
mod feasible;
mod latency;
mod loaded;
pub(crate) mod stream;
mod team;

use numalab_host::ErrorClass;
use numalab_record::{Cell, Experiment, Finished, Outcome, Placement, Sample, Team};

pub use feasible::check_plan;

use crate::context::MeasureContext;
use crate::error::MeasureError;
use crate::share::Share;

/// What a cell gave.
pub(crate) struct Measured {
    pub finished: Finished,
    pub samples: Vec<Sample>,
    /// What kind of failure it was, if it failed.
    pub failure: Option<ErrorClass>,
}

impl Measured {
    fn new(
        cell: &Cell,
        outcome: Outcome,
        placements: Vec<Placement>,
        samples: Vec<Sample>,
    ) -> Self {
        let finished = Finished { cell: cell.id.clone(), outcome, placements };
        Self { finished, samples, failure: None }
    }

    /// A cell that could not be measured.
    pub fn failed(cell: &Cell, error: &MeasureError) -> Self {
        let outcome = Outcome::Failed { reason: error.to_string() };
        let failure = Some(error.class());
        Self { failure, ..Self::new(cell, outcome, Vec::new(), Vec::new()) }
    }
}

/// Where measured cells go, one by one.
pub(crate) type Give<'a> = &'a mut dyn FnMut(&Cell, Measured) -> Result<(), MeasureError>;

/// Runs cells that share their buffers (see [`shared_run`]), within their `share` of the
/// time, and gives what each measured.
///
/// # Errors
/// What concerns the buffers of all of them; a cell's own failure is its outcome.
pub(crate) fn run_shared(
    context: &MeasureContext,
    cells: &[Cell],
    share: &Share<'_>,
    give: Give<'_>,
) -> Result<(), MeasureError> {
    let Some(first) = cells.first() else {
        return Ok(());
    };
    match &first.experiment {
        Experiment::Latency(cell) if cell.team == Team::Serial => {
            latency::run_serial(context, cells, share, give)
        }
        Experiment::Latency(_) => latency::run_concurrent(context, cells, share, give),
        Experiment::Bandwidth(_) => bandwidth::run(context, cells, share, give),
        Experiment::Loaded(_) => loaded::run(context, cells, share, give),
        Experiment::C2c(experiment) => {
            give(first, c2c::run(context, first, experiment, share.limit(0))?)
        }
        Experiment::Core(cell) => give(first, core::run(context, first, cell.cpu, share.limit(0))?),
        Experiment::Frames(cell) => Err(MeasureError::KernelOnly { work: cell.work.clone() }),
    }
}
