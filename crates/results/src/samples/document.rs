//! Two files of numbers compared, in JSON.

mod extremes;

pub use extremes::ComparedExtreme;

use numalab_stats::Sample;
use serde::Serialize;

use super::SampleComparison;
use crate::VerdictWord;
use crate::document::{Bounds, bounds};
use crate::shape::TwoModes;

/// Two files of numbers compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedSamples {
    /// The unit of the values; empty if it is not known.
    pub unit: String,
    /// The baseline.
    pub baseline: ComparedSample,
    /// The candidate.
    pub candidate: ComparedSample,
    /// Changes up to this many percent count as none.
    pub margin_percent: f64,
    /// The answer.
    pub verdict: VerdictWord,
    /// The change in percent.
    pub change_percent: Option<f64>,
    /// Its 95 % interval in percent.
    pub interval_percent: Option<Bounds>,
    /// How much each value resembles the one before it, 0 to 1.
    pub autocorrelation: f64,
    /// As many independent values as all of them are worth.
    pub effective_values: f64,
    /// Whether the baseline and the candidate drift.
    pub drifts: [bool; 2],
    /// The tests of a drift.
    pub trend_p: [f64; 2],
    /// The rank-sum test of a difference.
    pub rank_sum_p: f64,
    /// The test of equivalence within the margin.
    pub equivalence_p: f64,
    /// By how much better the candidate's mean is, in percent.
    pub gain_of_means_percent: Option<f64>,
    /// Its interval in percent.
    pub gain_of_means_interval_percent: Option<Bounds>,
    /// Percentiles of the bad end, where there are values enough: 300 for p99, 3,000 for p99.9.
    pub extremes: Vec<ComparedExtreme>,
}

/// One side of two files compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedSample {
    /// What it is called.
    pub name: String,
    /// Its values in the order taken.
    pub values: Vec<f64>,
    /// Their median.
    pub median: f64,
    /// Their mean.
    pub mean: f64,
    /// Their two modes, if a median describes neither.
    pub modes: Option<TwoModes>,
}

impl ComparedSamples {
    pub(crate) fn of(of: &SampleComparison) -> Self {
        let side = |name: &String, sample: &Sample, modes: &Option<TwoModes>| ComparedSample {
            name: name.clone(),
            values: sample.values().to_vec(),
            median: sample.median(),
            mean: sample.mean(),
            modes: modes.clone(),
        };
        let gain = of.gain_of_means();
        Self {
            unit: of.unit.clone(),
            baseline: side(&of.names[0], &of.baseline, &of.modes[0]),
            candidate: side(&of.names[1], &of.candidate, &of.modes[1]),
            margin_percent: of.margin.as_percent(),
            verdict: of.found.verdict.into(),
            change_percent: of.found.percent(),
            interval_percent: bounds(of.found.percent_interval()),
            autocorrelation: of.order.autocorrelation,
            effective_values: of.order.effective_size,
            drifts: of.order.trends.map(|trend| trend.is_shown()),
            trend_p: of.order.trends.map(|trend| trend.p),
            rank_sum_p: of.found.difference.p,
            equivalence_p: of.found.equivalence.p(),
            gain_of_means_percent: gain.map(|gain| gain.value),
            gain_of_means_interval_percent: bounds(gain.map(|gain| gain.interval)),
            extremes: of.extremes.iter().map(ComparedExtreme::of).collect(),
        }
    }
}
