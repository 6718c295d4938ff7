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
    /// The changes from the baseline, for each treatment with a published change.
    pub changes: Vec<PublishedChange>,
    /// True if treatments that differ here are in the published order; `None` if none differ.
    pub is_same_order: Option<bool>,
    /// The margin in percent, if some treatments differ here by no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tied_within_percent: Option<f64>,
}

/// A treatment's change, here and as published.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PublishedChange {
    /// The treatment's name.
    pub treatment: String,
    /// The change in percent, as the study estimates it.
    pub percent: f64,
    /// The published change in percent.
    pub published_percent: f64,
}

impl StudySummary<'_> {
    /// Returns the metrics with published figures, beginning with those of the study's rules.
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
            let percent = subject.change_percent((baseline, at))?;
            let treatment = run.treatments[at].name.clone();
            Some(PublishedChange { treatment, percent, published_percent })
        };
        let changes: Vec<PublishedChange> = (0..run.treatments.len()).filter_map(change).collect();
        // The first treatment has its place in the order too.
        let first =
            PublishedChange { treatment: String::new(), percent: 0.0, published_percent: 0.0 };
        let ordered: Vec<&PublishedChange> = match changes.len() {
            0 | 1 => Vec::new(),
            _ => std::iter::once(&first).chain(&changes).collect(),
        };
        let [tied, apart] = pairs(&ordered, subject.margin_percent);
        let is_same_order = (!apart.is_empty()).then(|| apart.iter().all(has_same_order));
        let tied_within_percent = (!tied.is_empty()).then_some(subject.margin_percent);
        let (workload, metric) = (subject.name.clone(), subject.quantity.metric.clone());
        (!changes.is_empty()).then_some(PublishedMetric {
            workload,
            metric,
            source,
            changes,
            is_same_order,
            tied_within_percent,
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

/// Two treatments with their changes.
type Pair<'c> = [&'c PublishedChange; 2];

/// Returns the pairs of treatments that differ by at most the margin here, and all other pairs.
fn pairs<'c>(changes: &[&'c PublishedChange], margin_percent: f64) -> [Vec<Pair<'c>>; 2] {
    let all = changes.iter().enumerate();
    let all = all.flat_map(|(at, one)| changes[at + 1..].iter().map(move |other| [*one, *other]));
    let is_tied = |[one, other]: &Pair<'_>| {
        let ratio = (100.0 + one.percent) / (100.0 + other.percent);
        100.0 * (ratio.max(ratio.recip()) - 1.0) <= margin_percent
    };
    let (tied, apart) = all.partition(is_tied);
    [tied, apart]
}

fn has_same_order([one, other]: &Pair<'_>) -> bool {
    let here = one.percent.total_cmp(&other.percent);
    here == one.published_percent.total_cmp(&other.published_percent)
}
