//! The tails of two samples.

use numalab_stats::Extreme;
use serde::Serialize;

use super::{Bounds, bounds};

/// Two samples compared at one percentile of their worse tail.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ComparedExtreme {
    /// The percentile, counted from the better end.
    pub percentile: f64,
    /// The baseline's value at the percentile.
    pub baseline: f64,
    /// The baseline's 95 % interval, if there are enough values: 473 for p99, 4,742 for p99.9.
    pub baseline_interval: Option<Bounds>,
    /// The candidate's value at the percentile.
    pub candidate: f64,
    pub candidate_interval: Option<Bounds>,
    pub change_percent: f64,
    /// The p-value of the test that both sides have equal shares of values beyond the pooled
    /// percentile.
    pub p: f64,
}

impl ComparedExtreme {
    pub(crate) fn of(of: &Extreme) -> Self {
        let [baseline, candidate] = of.values;
        let [baseline_interval, candidate_interval] = of.intervals.map(bounds);
        Self {
            percentile: of.percentile,
            baseline,
            baseline_interval,
            candidate,
            candidate_interval,
            change_percent: of.percent(),
            p: of.p,
        }
    }
}
