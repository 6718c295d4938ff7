//! The JSON document of two runs of a study compared.

use numalab_stats::Comparison;
use serde::{Deserialize, Serialize};

use crate::VerdictWord;
use crate::compare::{AnswerWord, FactDifference};
use crate::document::{Bounds, bounds};
use crate::label::change_words;
use crate::shape::Tail;
use crate::study::page::words::own_words;
use crate::study::{Effect, PairRow, StudyPair, Subject};

/// Two runs of a study compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StudyComparison {
    /// The study's question.
    #[serde(default)]
    pub question: String,
    /// True if there are verdicts, which need several sessions per side.
    pub judged: bool,
    /// The equivalence margin in percent: smaller changes count as none.
    pub margin_percent: f64,
    /// All metrics under all treatments that both runs have.
    pub values: Vec<PairedValue>,
    /// The results of each run by itself.
    #[serde(default)]
    pub answers: Vec<PairedAnswer>,
    /// Facts that differ between the two systems.
    pub environment: Vec<FactDifference>,
    /// True if anything is worse by more than the margin.
    pub any_worse: bool,
}

/// One metric under one treatment, in both runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PairedValue {
    /// The workload and the metric.
    pub metric: String,
    /// The unit of the metric.
    #[serde(default)]
    pub unit: String,
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
    pub verdict: AnswerWord,
    /// The difference of the tails of its blocks.
    #[serde(alias = "far_end")]
    pub tail: Option<Tail>,
}

/// Each run's own result for one metric and one change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PairedAnswer {
    /// The workload and the metric.
    pub metric: String,
    /// The change in words: `pages 4k → 2m`.
    pub change: String,
    /// The first run's result.
    pub baseline: OwnAnswer,
    /// The second run's result.
    pub candidate: OwnAnswer,
}

/// The result of one run on its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OwnAnswer {
    /// The verdict, adjusted for all metrics.
    pub verdict: VerdictWord,
    /// The change in percent; `None` if a value is not positive.
    pub change_percent: Option<f64>,
    /// The change and the verdict in words: `-3.1 %, equivalent within 2 %`.
    pub words: String,
}

impl StudyPair<'_> {
    /// Returns the document, with the results of each run by itself.
    pub fn document(&self) -> StudyComparison {
        let value = |row: &PairRow| PairedValue {
            metric: row.metric.clone(),
            unit: row.unit.clone(),
            treatment: row.treatment.clone(),
            baseline_median: row.medians[0],
            candidate_median: row.medians[1],
            sessions: row.sessions,
            change_percent: row.change_percent,
            interval_percent: bounds(row.interval_percent),
            verdict: row.answer.into(),
            tail: row.tail.clone(),
        };
        StudyComparison {
            question: self.before.document.run.question.clone(),
            judged: self.is_judged(),
            margin_percent: self.tolerance.as_percent(),
            values: self.rows.iter().map(value).collect(),
            answers: answers(self),
            environment: self.environment.clone(),
            any_worse: self.any_worse(),
        }
    }
}

fn answers(pair: &StudyPair<'_>) -> Vec<PairedAnswer> {
    let answer = |(subject, effect): (&Subject, &Effect)| {
        let metric = subject.title();
        let mut others = pair.after.answers();
        let (other_subject, other) = others
            .find(|(other, found)| other.title() == metric && found.change == effect.change)?;
        let own = |subject: &Subject, found: &Comparison| OwnAnswer {
            verdict: found.verdict.into(),
            change_percent: found.percent(),
            words: own_words(subject, found),
        };
        Some(PairedAnswer {
            metric,
            change: change_words(effect.kind, &effect.change),
            baseline: own(subject, &effect.found),
            candidate: own(other_subject, &other.found),
        })
    };
    pair.before.answers().filter_map(answer).collect()
}
