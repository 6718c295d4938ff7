//! What a workload's output is about: metrics and their values.

pub use numalab_record::study::Better;
use serde::{Deserialize, Serialize};

/// What one number of a workload's output measures.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Its name within the workload: `time-per-op`, `throughput`, `SET rps`.
    pub name: String,
    /// The unit of its values as people write it: `us`, `GB/s`, `events/s`.
    pub unit: String,
    /// Which direction is an improvement.
    pub better: Better,
}

impl Metric {
    /// A metric of which smaller values are better.
    #[must_use]
    pub fn lower(name: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { name: name.into(), unit: unit.into(), better: Better::Lower }
    }

    /// A metric of which larger values are better.
    #[must_use]
    pub fn higher(name: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { name: name.into(), unit: unit.into(), better: Better::Higher }
    }

    /// The metric with this value.
    #[must_use]
    pub(crate) fn at(self, value: f64) -> Reading {
        Reading { metric: self, value }
    }
}

/// A metric's value in one run of a workload; always finite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// What is measured.
    pub metric: Metric,
    /// The value, in the metric's unit.
    pub value: f64,
}
