//! Scaling over ranks: figures of each step, ranks in groups, and what is seen in them.

pub mod figures;
mod finding;
pub mod groups;
mod rules;

use numalab_record::scaling::Scaling;
use serde::Serialize;

pub use figures::StepFigures;
pub use finding::{
    CacheFit, Cause, Difference, Plateau, ScalingEvidence, ScalingFinding, ScalingObservation, Side,
};
pub use groups::{Group, GroupKind};

/// A scaling run with what follows from it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScalingSummary<'a> {
    /// The run itself, every figure of every rank.
    pub scaling: &'a Scaling,
    /// Statistics over the ranks of each step and size.
    pub figures: Vec<StepFigures>,
    /// Ranks in groups, in the step with the most ranks of each series, at the largest size.
    pub groups: Vec<Group>,
    /// What is seen, with its evidence.
    pub findings: Vec<ScalingFinding>,
}

impl<'a> ScalingSummary<'a> {
    /// Analyses a run.
    #[must_use]
    pub fn of(scaling: &'a Scaling) -> Self {
        Self {
            scaling,
            figures: figures::all(scaling),
            groups: groups::all(scaling),
            findings: rules::all(scaling),
        }
    }
}
