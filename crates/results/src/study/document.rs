//! A study with its effects, in JSON.

mod pair;

pub use pair::{PairedValue, StudyComparison};

use numalab_record::study::StudyDocument;
use numalab_stats::Verdict;
use serde::Serialize;

use crate::VerdictWord;
use crate::document::{Bounds, bounds};
use crate::label::change_words;
use crate::samples::document::ComparedExtreme;
use crate::study::{Change, Effect, StudyFinding, StudySummary, Subject};

/// A study with every raw sample and every effect.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyResults<'a> {
    /// What was known before, and the whole journal.
    #[serde(flatten)]
    pub document: &'a StudyDocument,
    /// Every effect of every metric.
    pub effects: Vec<EffectFound>,
    /// The baseline against itself, by metric.
    pub aa: Vec<AaFound>,
    /// What was found about the study as a whole.
    pub findings: Vec<StudyFinding>,
    /// Whether anything is worse by more than its margin.
    pub any_worse: bool,
}

/// An effect on a metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EffectFound {
    /// The workload.
    pub workload: String,
    /// The metric.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// Whether the metric answers the study's question.
    pub is_primary: bool,
    /// What the effect is: `effect`, `within`, `together`, `interaction` or `trend`.
    pub kind: &'static str,
    /// What is changed: `pages 4k → 2m`.
    pub change: String,
    /// The same as values: factors and their levels.
    #[serde(flatten)]
    pub of: Change,
    /// Blocks that are judged.
    pub blocks: usize,
    /// Changes up to this many percent count as none.
    pub margin_percent: f64,
    /// What was found.
    pub found: Found,
    /// What was found with the first sample of each cell, disturbed or not; `None` where
    /// that is the same.
    pub first_samples: Option<Found>,
    /// The mean of the differences with its bootstrap interval.
    pub bootstrap_log_mean: [f64; 3],
    /// The permutation test of the mean.
    pub permutation_p: f64,
    /// The effect of each block: log ratios, or differences where there are none.
    pub differences: Vec<f64>,
    /// Percentiles of the bad end, where both sides have values enough: 300 for p99, 3,000 for
    /// p99.9.
    pub extremes: Vec<ComparedExtreme>,
}

/// What a comparison found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Found {
    /// The verdict, all metrics allowed for.
    pub verdict: VerdictWord,
    /// Blocks still needed for an answer, where that is known.
    pub further_blocks: Option<usize>,
    /// The change in percent.
    pub change_percent: Option<f64>,
    /// Its interval in percent.
    pub interval_percent: Option<Bounds>,
    /// The effect in its own scale.
    pub effect: f64,
    /// The signed-rank test of a difference.
    pub signed_rank_p: f64,
    /// The test of equivalence within the margin.
    pub equivalence_p: f64,
}

/// The baseline against itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AaFound {
    /// The workload.
    pub workload: String,
    /// The metric.
    pub metric: String,
    /// What was found where nothing was changed.
    pub found: Found,
    /// The least effect that would be seen with 80 % power, in percent.
    pub least_detectable_percent: Option<f64>,
}

impl<'a> StudyResults<'a> {
    pub(crate) fn of(summary: &StudySummary<'a>) -> Self {
        let of_subject = |subject: &Subject| -> Vec<EffectFound> {
            subject.effects.iter().map(|effect| EffectFound::of(subject, effect)).collect()
        };
        let aa = |subject: &Subject| {
            let found = &subject.aa.as_ref()?.found;
            Some(AaFound {
                workload: subject.name.clone(),
                metric: subject.quantity.metric.clone(),
                found: Found::of(found),
                least_detectable_percent: found.least_detectable_percent(),
            })
        };
        Self {
            document: summary.document,
            effects: summary.subjects.iter().flat_map(of_subject).collect(),
            aa: summary.subjects.iter().filter_map(aa).collect(),
            findings: summary.findings(),
            any_worse: summary.any_worse(),
        }
    }
}

impl EffectFound {
    fn of(subject: &Subject, effect: &Effect) -> Self {
        let bootstrap = &effect.bootstrap;
        Self {
            workload: subject.name.clone(),
            metric: subject.quantity.metric.clone(),
            unit: subject.quantity.unit.clone(),
            is_primary: subject.is_primary,
            kind: effect.kind.name(),
            change: change_words(effect.kind, &effect.change),
            of: effect.change.clone(),
            blocks: subject.blocks(),
            margin_percent: subject.margin_percent,
            found: Found::of(&effect.found),
            first_samples: effect.first.as_ref().map(Found::of),
            bootstrap_log_mean: [bootstrap.value, bootstrap.interval.lo, bootstrap.interval.hi],
            permutation_p: effect.permutation.p,
            differences: effect.differences.clone(),
            extremes: effect.extremes.iter().map(ComparedExtreme::of).collect(),
        }
    }
}

impl Found {
    fn of(found: &numalab_stats::Comparison) -> Self {
        Self {
            verdict: found.verdict.into(),
            further_blocks: match found.verdict {
                Verdict::Inconclusive { further_blocks } => further_blocks,
                _ => None,
            },
            change_percent: found.percent(),
            interval_percent: bounds(found.percent_interval()),
            effect: found.effect,
            signed_rank_p: found.difference.p,
            equivalence_p: found.equivalence.p(),
        }
    }
}
