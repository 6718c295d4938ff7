//! A scaling run analysed: figures over ranks, groups of ranks, and what is seen in them.

mod csv;
mod page;
mod rules;

use numalab_analysis::scaling::{Group, StepFigures, figures, groups};
use numalab_record::Kind;
use numalab_record::scaling::Scaling;
use serde::Serialize;

pub use rules::Explanation;

use crate::page::{Page, Report};

/// A scaling run with what follows from it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScalingReport<'a> {
    /// The run itself, every figure of every rank.
    pub scaling: &'a Scaling,
    /// Statistics over the ranks of each step and size.
    pub figures: Vec<StepFigures>,
    /// Ranks in groups, in the step with the most ranks of each series, at the largest size.
    pub groups: Vec<Group>,
    /// What is seen, with its evidence.
    pub explanations: Vec<Explanation>,
}

impl<'a> ScalingReport<'a> {
    /// Analyses a run.
    #[must_use]
    pub fn of(scaling: &'a Scaling) -> Self {
        Self {
            scaling,
            figures: figures::all(scaling),
            groups: groups::all(scaling),
            explanations: rules::all(scaling),
        }
    }
}

impl Report for ScalingReport<'_> {
    fn page(&self) -> Page {
        page::page(self)
    }

    /// A line for each step and size.
    fn csv(&self) -> String {
        csv::csv(&self.figures)
    }

    fn json(&self) -> serde_json::Result<String> {
        #[derive(Serialize)]
        struct Shown<'a> {
            schema: Kind,
            #[serde(flatten)]
            report: &'a ScalingReport<'a>,
        }
        super::json(&Shown { schema: Kind::Scaling, report: self })
    }
}
