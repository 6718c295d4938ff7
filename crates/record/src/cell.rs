//! What is measured: one cell of a plan.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::experiment::Experiment;
use crate::placement::Placement;

/// The name of a cell, unique and stable within its plan.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct CellId(pub String);

impl fmt::Display for CellId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// One thing to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cell {
    /// Its name.
    pub id: CellId,
    /// What is done.
    #[serde(flatten)]
    pub experiment: Experiment,
}

impl Cell {
    /// A cell named after what is done in it: the same experiment always has the same name,
    /// different ones never do.
    #[must_use]
    pub fn of(experiment: Experiment) -> Self {
        Self { id: CellId(experiment.description().id()), experiment }
    }
}

/// How a cell ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// The interval became narrow enough.
    Precise,
    /// The budget was spent first; the samples stand.
    BudgetSpent,
    /// It could not be measured.
    Failed {
        /// Why.
        reason: String,
    },
}

/// A cell that ended, with the proof of where its workers were.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finished {
    /// The cell's name.
    pub cell: CellId,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Where each worker was, in the plan's order.
    pub placements: Vec<Placement>,
}
