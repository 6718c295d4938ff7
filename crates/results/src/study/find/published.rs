//! Published figures next to a study's own: changes from the same baselines.

use numalab_record::study::{FactorKind, Published, StudyRun};
use serde::Serialize;

use super::{StudySummary, Subject};

/// A metric with the published figures that the study repeats.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PublishedMetric {
    /// The workload's name.
    pub workload: String,
    /// The metric's name.
    pub metric: String,
    /// The author and the machine of the published figures.
    pub source: String,
    /// The changes from the baseline, one per treatment with a published one.
    pub changes: Vec<PublishedChange>,
    /// True if the treatments have the same order by both; `None` with a single one.
    pub is_same_order: Option<bool>,
}

/// A treatment's change, here and as published.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PublishedChange {
    /// The treatment's name.
    pub treatment: String,
    /// The change of the median in percent.
    pub percent: f64,
    /// The published change in percent.
    pub published_percent: f64,
}

impl StudySummary<'_> {
    /// Returns the metrics with published figures, those of the study's rules first.
    pub fn published(&self) -> Vec<PublishedMetric> {
        let found = self.subjects.iter().filter_map(|subject| self.published_metric(subject));
        found.collect()
    }

    /// Returns the figures that were published for a metric.
    pub fn published_figures(&self, subject: &Subject) -> Option<&Published> {
        let name = format!("{}.{}", subject.name, subject.quantity.metric);
        self.document.run.published.iter().find(|published| published.metric == name)
    }

    /// Returns the published change in percent between two treatments.
    pub fn published_percent(&self, subject: &Subject, sides: (usize, usize)) -> Option<f64> {
        let published = self.published_figures(subject)?;
        let value = |at: usize| published.values.get(&self.document.run.treatments.get(at)?.name);
        Some(100.0 * (value(sides.1)? / value(sides.0)? - 1.0))
    }

    fn published_metric(&self, subject: &Subject) -> Option<PublishedMetric> {
        let source = self.published_figures(subject)?.source.clone();
        let run = &self.document.run;
        let change = |at: usize| {
            let baseline = baseline(run, at)?;
            let published_percent = self.published_percent(subject, (baseline, at))?;
            let percent = 100.0 * (subject.median(at)? / subject.median(baseline)? - 1.0);
            let treatment = run.treatments[at].name.clone();
            Some(PublishedChange { treatment, percent, published_percent })
        };
        let changes: Vec<PublishedChange> = (0..run.treatments.len()).filter_map(change).collect();
        let is_same_order = (changes.len() > 1).then(|| is_same_order(&changes));
        let (workload, metric) = (subject.name.clone(), subject.quantity.metric.clone());
        (!changes.is_empty()).then_some(PublishedMetric {
            workload,
            metric,
            source,
            changes,
            is_same_order,
        })
    }
}

/// Returns the treatment that another one is compared with: the first levels, at the same numbers;
/// `None` for that treatment itself.
fn baseline(run: &StudyRun, treatment: usize) -> Option<usize> {
    let levels = &run.treatments.get(treatment)?.levels;
    let first = run.factors.iter().zip(levels).map(|(factor, level)| match factor.kind {
        FactorKind::Scale => *level,
        FactorKind::Choice => 0,
    });
    let first: Vec<usize> = first.collect();
    let found = run.treatments.iter().position(|of| of.levels == first)?;
    (found != treatment).then_some(found)
}

fn is_same_order(changes: &[PublishedChange]) -> bool {
    let pairs = changes.iter().enumerate().flat_map(|(at, one)| {
        changes[at + 1..].iter().map(move |other| {
            let here = one.percent.total_cmp(&other.percent);
            (here, one.published_percent.total_cmp(&other.published_percent))
        })
    });
    pairs.into_iter().all(|(here, published)| here == published)
}
