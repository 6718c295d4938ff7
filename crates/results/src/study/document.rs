//! The JSON document of a study with its effects.

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
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct StudyResults<'a> {
    /// The study's definition and environment, and its whole journal.
    #[serde(flatten)]
    pub document: &'a StudyDocument,
    /// All effects on all metrics.
    pub effects: Vec<EffectFound>,
    /// The A/A arm (the baseline against itself), by metric.
    pub aa: Vec<AaFound>,
    /// Findings about the study as a whole.
    pub findings: Vec<StudyFinding>,
    /// True if any answer is worse by more than its margin.
    pub any_worse: bool,
}

/// One effect on one metric.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct EffectFound {
    /// The workload's name.
    pub workload: String,
    /// The metric's name.
    pub metric: String,
    /// The unit of the metric.
    pub unit: String,
    /// True if the metric answers the study's question.
    pub is_primary: bool,
    /// The kind of effect: `effect`, `within`, `together`, `interaction` or `trend`.
    pub kind: &'static str,
    /// The change in words: `pages 4k → 2m`.
    pub change: String,
    /// The change as factors and levels.
    #[serde(flatten)]
    pub of: Change,
    /// Number of blocks analysed.
    pub blocks: usize,
    /// The equivalence margin in percent: smaller changes count as none.
    pub margin_percent: f64,
    /// The result, without disturbed samples that were repeated.
    pub found: VerdictFound,
    /// The result with the first sample of each cell, disturbed or not; `None` if it is the same.
    pub first_samples: Option<VerdictFound>,
    /// The mean of the differences, and the bounds of its bootstrap interval.
    pub bootstrap_log_mean: [f64; 3],
    /// The p-value of the permutation test on the mean.
    pub permutation_p: f64,
    /// The effect in each block, as a log ratio, or as a difference if there is no ratio.
    pub differences: Vec<f64>,
    /// Percentiles of the worse tail, if both sides have enough values: 300 for p99, 3,000 for
    /// p99.9.
    pub extremes: Vec<ComparedExtreme>,
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct VerdictFound {
    /// The verdict, adjusted for all metrics.
    pub verdict: VerdictWord,
    /// Estimated number of further blocks for a verdict, if known.
    pub further_blocks: Option<usize>,
    pub change_percent: Option<f64>,
    /// The interval of the change in percent.
    pub interval_percent: Option<Bounds>,
    /// The effect on its natural scale.
    pub effect: f64,
    /// The p-value of the signed-rank test for a difference.
    pub signed_rank_p: f64,
    /// The p-value of the test for equivalence within the margin.
    pub equivalence_p: f64,
}

/// The A/A arm of one metric: the baseline against itself.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct AaFound {
    /// The workload's name.
    pub workload: String,
    /// The metric's name.
    pub metric: String,
    /// The result, with nothing changed between the two sides.
    pub found: VerdictFound,
    /// The smallest effect detectable with 80 % power, in percent.
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
                found: VerdictFound::of(found),
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
            found: VerdictFound::of(&effect.found),
            first_samples: effect.first.as_ref().map(VerdictFound::of),
            bootstrap_log_mean: [bootstrap.value, bootstrap.interval.lo, bootstrap.interval.hi],
            permutation_p: effect.permutation.p,
            differences: effect.differences.clone(),
            extremes: effect.extremes.iter().map(ComparedExtreme::of).collect(),
        }
    }
}

impl VerdictFound {
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
