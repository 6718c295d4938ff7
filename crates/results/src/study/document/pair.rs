//! Two runs of a study compared, in JSON.

use serde::Serialize;

use crate::compare::FactDifference;
use crate::document::{Bounds, bounds};
use crate::label::answer_word;
use crate::shape::FarEnd;
use crate::study::{PairRow, StudyPair};

/// Two runs of a study compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyComparison<'a> {
    /// Whether there are verdicts: with one session a side there are none.
    pub judged: bool,
    /// Changes up to this many percent count as none.
    pub margin_percent: f64,
    /// Every metric under every treatment that both runs have.
    pub values: Vec<PairedValue>,
    /// What differs between the systems.
    pub environment: &'a [FactDifference],
    /// Whether anything is worse beyond the margin.
    pub any_worse: bool,
}

/// A metric under a treatment in both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairedValue {
    /// Workload and metric.
    pub metric: String,
    /// The treatment.
    pub treatment: String,
    /// The first run's median.
    pub baseline_median: f64,
    /// The second run's.
    pub candidate_median: f64,
    /// Sessions of the first and the second run.
    pub sessions: [usize; 2],
    /// The change in percent; `None` where a value is not positive.
    pub change_percent: Option<f64>,
    /// Its 95 % interval in percent, by how sessions differ; `None` with one session a side.
    pub interval_percent: Option<Bounds>,
    /// The answer: a verdict, or `not judged`.
    pub verdict: &'static str,
    /// Where the far ends of its blocks differ.
    pub far_end: Option<FarEnd>,
}

impl<'a> StudyComparison<'a> {
    pub(crate) fn of(pair: &'a StudyPair<'_>) -> Self {
        let value = |row: &PairRow| PairedValue {
            metric: row.metric.clone(),
            treatment: row.treatment.clone(),
            baseline_median: row.medians[0],
            candidate_median: row.medians[1],
            sessions: row.sessions,
            change_percent: row.change_percent,
            interval_percent: bounds(row.interval_percent),
            verdict: answer_word(row.answer),
            far_end: row.far_end.clone(),
        };
        Self {
            judged: pair.is_judged(),
            margin_percent: pair.tolerance.as_percent(),
            values: pair.rows.iter().map(value).collect(),
            environment: &pair.environment,
            any_worse: pair.any_worse(),
        }
    }
}
