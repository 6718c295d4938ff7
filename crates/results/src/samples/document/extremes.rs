//! The far ends of two samples.

use numalab_stats::Extreme;
use serde::Serialize;

use super::{Bounds, bounds};

/// Two files compared at one percentile of their bad end.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedExtreme {
    /// The percentile, counted from the good end.
    pub percentile: f64,
    /// That of the baseline.
    pub baseline: f64,
    /// Its 95 % interval, where there are values enough: 473 for p99, 4,742 for p99.9.
    pub baseline_interval: Option<Bounds>,
    /// That of the candidate.
    pub candidate: f64,
    /// Its 95 % interval.
    pub candidate_interval: Option<Bounds>,
    /// The change in percent.
    pub change_percent: f64,
    /// The test that both have as many values beyond the percentile of all.
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
