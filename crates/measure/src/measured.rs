//! The result of measuring a cell, and its receiver.

use numalab_host::{Classed, ErrorClass};
use numalab_record::{Cell, Finished, Outcome, Placement, Sample};

use crate::error::MeasureError;

/// The result of a cell.
pub(crate) struct Measured {
    pub finished: Finished,
    pub samples: Vec<Sample>,
    /// The class of the failure, if it failed.
    pub failure: Option<ErrorClass>,
}

impl Measured {
    pub fn new(
        cell: &Cell,
        outcome: Outcome,
        placements: Vec<Placement>,
        samples: Vec<Sample>,
    ) -> Self {
        let finished = Finished { cell: cell.id.clone(), outcome, placements };
        Self { finished, samples, failure: None }
    }

    /// Returns the result of a cell that could not be measured.
    pub fn failed(cell: &Cell, error: &MeasureError) -> Self {
        let outcome = Outcome::Failed { reason: error.to_string() };
        let failure = Some(error.class());
        Self { failure, ..Self::new(cell, outcome, Vec::new(), Vec::new()) }
    }
}

pub(crate) type Give<'a> = &'a mut dyn FnMut(&Cell, Measured) -> Result<(), MeasureError>;
