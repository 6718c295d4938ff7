//! The JSON document of two runs of a study compared.

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
    /// True if there are verdicts, which need several sessions per side.
    pub judged: bool,
    /// The equivalence margin in percent: smaller changes count as none.
    pub margin_percent: f64,
    /// All metrics under all treatments that both runs have.
    pub values: Vec<PairedValue>,
    /// Facts that differ between the two systems.
    pub environment: &'a [FactDifference],
    /// True if anything is worse by more than the margin.
    pub any_worse: bool,
}

/// One metric under one treatment, in both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairedValue {
    /// The workload and the metric.
    pub metric: String,
    /// The treatment's name.
    pub treatment: String,
    /// The first run's median.
    pub baseline_median: f64,
    /// The second run's median.
    pub candidate_median: f64,
    /// Number of sessions in the first and the second run.
    pub sessions: [usize; 2],
    /// The change in percent; `None` if a value is not positive.
    pub change_percent: Option<f64>,
    /// The 95 % interval of the change in percent, from the variation between sessions; `None` with
    /// one session per side.
    pub interval_percent: Option<Bounds>,
    /// The verdict, or `not judged`.
    pub verdict: &'static str,
    /// The difference of the far ends of its blocks.
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
