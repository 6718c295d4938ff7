//! What values of a study measure.

use numalab_stats::Direction;
use serde::{Deserialize, Serialize};

/// A value that was measured; always finite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reading {
    /// What it is about.
    #[serde(flatten)]
    pub quantity: Quantity,
    /// Its value in the unit.
    pub value: f64,
}

/// What a value of a study measures. Workloads name what they print as they like; what runs of
/// numalab measure is the closed list [`Metric`](crate::Metric), of which
/// [`Metric::quantity`](crate::Metric::quantity) makes one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Quantity {
    /// Its name within the workload: `time-per-op`, `throughput`, `SET rps`.
    pub metric: String,
    /// The unit as people write it: `us`, `GB/s`, `events/s`.
    pub unit: String,
    /// Which way is better.
    pub better: Direction,
}

impl Quantity {
    /// One of which smaller values are better.
    #[must_use]
    pub fn lower(metric: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { metric: metric.into(), unit: unit.into(), better: Direction::LowerIsBetter }
    }

    /// One of which larger values are better.
    #[must_use]
    pub fn higher(metric: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { better: Direction::HigherIsBetter, ..Self::lower(metric, unit) }
    }

    /// The quantity with this value.
    #[must_use]
    pub fn at(self, value: f64) -> Reading {
        Reading { quantity: self, value }
    }
}
