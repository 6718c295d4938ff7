//! A cell of a plan: one quantity to measure in one place.

use core::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::experiment::Experiment;
use crate::placement::Placement;

/// The name of a cell, unique and stable within its plan.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct CellId(pub String);

impl fmt::Display for CellId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// One thing to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// The cell's name.
    pub id: CellId,
    #[serde(flatten)]
    pub experiment: Experiment,
}

impl Cell {
    /// Returns the cell of `experiment`, named after it: equal experiments have equal names, and
    /// different experiments different names.
    pub fn of(experiment: Experiment) -> Self {
        Self { id: CellId(experiment.description().id()), experiment }
    }
}

/// The end of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// The interval became narrow enough.
    Precise,
    /// The budget ran out first; the samples are valid.
    BudgetSpent,
    /// The cell could not be measured.
    Failed { reason: String },
}

/// A finished cell, with the proof of its workers' placement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finished {
    /// The cell's name.
    pub cell: CellId,
    /// The end of the cell.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The placement of each worker, in the plan's order.
    pub placements: Vec<Placement>,
}
