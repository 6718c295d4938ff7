//! Scaling over ranks: statistics of each step, groups of ranks, and findings.

pub mod figures;
mod finding;
pub mod groups;
mod rules;

use numalab_record::scaling::Scaling;
use serde::Serialize;

pub use figures::StepFigures;
pub use finding::{
    CacheFit, Cause, Difference, Plateau, RankSide, ScalingEvidence, ScalingFinding,
    ScalingObservation,
};
pub use groups::{Group, GroupKind};

/// A scaling run with its statistics and findings.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ScalingSummary<'a> {
    /// The run as recorded, with every figure of every rank.
    pub scaling: &'a Scaling,
    /// Statistics over the ranks, for each step and size.
    pub figures: Vec<StepFigures>,
    /// Groups of ranks, for the step with the most ranks of each series, at the largest size.
    pub groups: Vec<Group>,
    /// The findings with their evidence.
    pub findings: Vec<ScalingFinding>,
}

impl<'a> ScalingSummary<'a> {
    pub fn of(scaling: &'a Scaling) -> Self {
        Self {
            scaling,
            figures: figures::all(scaling),
            groups: groups::all(scaling),
            findings: rules::all(scaling),
        }
    }
}
