//! The JSON document of two files of numbers compared.

mod extremes;

pub use extremes::ComparedExtreme;

use numalab_stats::{Direction, Sample};
use serde::{Deserialize, Serialize};

use super::SampleComparison;
use crate::VerdictWord;
use crate::document::{Bounds, bounds};
use crate::shape::{Tail, TwoModes};

/// Two files of numbers compared.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ComparedSamples {
    /// The unit of the values; empty if unknown.
    pub unit: String,
    /// The direction in which values improve.
    pub better: Direction,
    pub baseline: ComparedSample,
    pub candidate: ComparedSample,
    /// The equivalence margin in percent: smaller changes count as none.
    pub margin_percent: f64,
    /// The verdict on the medians.
    pub verdict: VerdictWord,
    pub change_percent: Option<f64>,
    /// The 95 % interval of the change in percent.
    pub interval_percent: Option<Bounds>,
    /// The correlation of each value with the one before it, 0 to 1.
    pub autocorrelation: f64,
    /// The number of independent values with the same information.
    pub effective_values: f64,
    /// True for a side that drifts: baseline, then candidate.
    pub drifts: [bool; 2],
    /// The p-values of the trend tests: baseline, then candidate.
    pub trend_p: [f64; 2],
    /// The p-value for a difference: the larger of those of the rank-sum test, corrected for the
    /// correlation, and of the test of the parts.
    pub difference_p: f64,
    /// The p-value for equivalence within the margin, of the same tests.
    pub equivalence_p: f64,
    /// The improvement of the candidate's mean in percent.
    pub gain_of_means_percent: Option<f64>,
    /// The interval of that improvement in percent.
    pub gain_of_means_interval_percent: Option<Bounds>,
    /// The percentile at which the tails differ, or may differ, by more than the medians; absent if
    /// there is none.
    pub tail: Option<Tail>,
    /// Percentiles of the worse tail, if there are enough values: 300 for p99, 3,000 for p99.9.
    pub extremes: Vec<ComparedExtreme>,
}

/// The members of the document from which the others follow.
#[derive(Debug, Deserialize)]
pub(crate) struct SamplesPart {
    unit: String,
    /// Absent from documents of earlier versions.
    better: Option<Direction>,
    baseline: SidePart,
    candidate: SidePart,
    margin_percent: f64,
}

#[derive(Debug, Deserialize)]
struct SidePart {
    name: String,
    values: Vec<f64>,
}

impl SamplesPart {
    /// Compares the values again; `None` if the direction of improvement is unknown, or the values
    /// do not form a sample.
    pub(crate) fn compared(self) -> Option<SampleComparison> {
        let (baseline, candidate) = (self.baseline, self.candidate);
        SampleComparison::of(
            [baseline.name, candidate.name],
            [baseline.values, candidate.values],
            self.unit,
            self.better?,
            self.margin_percent,
        )
        .ok()
    }
}

/// One of the two samples compared.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ComparedSample {
    /// The sample's name, such as a file.
    pub name: String,
    /// The values in the order taken.
    pub values: Vec<f64>,
    /// The median of the values.
    pub median: f64,
    /// The mean of the values.
    pub mean: f64,
    /// The two modes of the values, if a median describes neither.
    pub modes: Option<TwoModes>,
    /// The number of values that are zero or less among others far above, as of failed runs.
    pub not_positive: usize,
}

impl ComparedSamples {
    pub(crate) fn of(of: &SampleComparison) -> Self {
        let not_positive = of.not_positive();
        let side = |at: usize, sample: &Sample| ComparedSample {
            name: of.names[at].clone(),
            values: sample.values().to_vec(),
            median: sample.median(),
            mean: sample.mean(),
            modes: of.modes[at].clone(),
            not_positive: not_positive[at],
        };
        let gain = of.gain_of_means();
        Self {
            unit: of.unit.clone(),
            better: of.direction,
            baseline: side(0, &of.baseline),
            candidate: side(1, &of.candidate),
            margin_percent: of.margin.as_percent(),
            verdict: of.found.verdict.into(),
            change_percent: of.found.percent(),
            interval_percent: bounds(of.found.percent_interval()),
            autocorrelation: of.order.autocorrelation,
            effective_values: of.order.effective_size,
            drifts: of.order.trends.map(|trend| trend.is_shown()),
            trend_p: of.order.trends.map(|trend| trend.p),
            difference_p: of.found.difference.p,
            equivalence_p: of.found.equivalence.p(),
            gain_of_means_percent: gain.map(|gain| gain.value),
            gain_of_means_interval_percent: bounds(gain.map(|gain| gain.interval)),
            tail: of.tail(),
            extremes: of.extremes.iter().map(ComparedExtreme::of).collect(),
        }
    }
}
