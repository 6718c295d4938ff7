//! The best treatment by the metric that answers the question.

use numalab_record::study::FactorKind;
use numalab_stats::{Direction, Verdict};
use serde::Serialize;

use super::{StudySummary, Subject};

/// The treatment with the best median of the metric that a study asks about.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct BestTreatment {
    /// The workload's name.
    pub workload: String,
    /// The metric's name.
    pub metric: String,
    /// The unit of both medians.
    pub unit: String,
    /// The treatment's name.
    pub treatment: String,
    /// The treatment's median.
    pub median: f64,
    /// The baseline's name; the treatment itself if none is better.
    pub baseline: String,
    pub baseline_median: f64,
    /// True if it is proven better than the baseline. The best of several medians looks better than
    /// it is.
    pub is_shown: bool,
    /// The treatment's change from the baseline, in percent.
    pub change_percent: Option<f64>,
    /// The interval of that change in percent.
    pub interval_percent: Option<[f64; 2]>,
}

impl StudySummary<'_> {
    /// Returns the metric that answers the question: the primary one, or the only one tested.
    pub fn asked(&self) -> Option<&Subject> {
        let mut tested = self.subjects.iter().filter(|subject| !subject.is_fact);
        match (tested.next(), tested.next()) {
            (Some(first), second) if first.is_primary || second.is_none() => Some(first),
            _ => None,
        }
    }

    /// Returns the best of several treatments (the first of equals), if all factors are choices and
    /// at least one block is finished.
    pub fn best(&self) -> Option<BestTreatment> {
        let run = &self.document.run;
        let subject = self.asked().filter(|_| run.treatments.len() > 2)?;
        if run.factors.iter().any(|factor| factor.kind == FactorKind::Scale) {
            return None;
        }
        let medians: Option<Vec<f64>> =
            (0..run.treatments.len()).map(|treatment| subject.median(treatment)).collect();
        let medians = medians?;
        let is_better = |one: f64, other: f64| match subject.quantity.better {
            Direction::LowerIsBetter => one < other,
            Direction::HigherIsBetter => one > other,
        };
        let mut best = 0;
        for (at, median) in medians.iter().enumerate() {
            if is_better(*median, medians[best]) {
                best = at;
            }
        }
        let effect = subject.effects.iter().find(|effect| effect.sides == Some((0, best)));
        let found = effect.map(|effect| &effect.found);
        let interval = found.and_then(|found| found.percent_interval());
        Some(BestTreatment {
            workload: subject.name.clone(),
            metric: subject.quantity.metric.clone(),
            unit: subject.quantity.unit.clone(),
            treatment: run.treatments[best].name.clone(),
            median: medians[best],
            baseline: run.treatments[0].name.clone(),
            baseline_median: medians[0],
            is_shown: found.is_some_and(|found| found.verdict == Verdict::Better),
            change_percent: found.and_then(|found| found.percent()),
            interval_percent: interval.map(|interval| [interval.lo, interval.hi]),
        })
    }
}
