//! Quantities that a study measures, and their values.

use numalab_stats::Direction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A measured value; always finite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reading {
    #[serde(flatten)]
    pub quantity: Quantity,
    /// The value, in the quantity's unit.
    pub value: f64,
}

/// A quantity that a study measures. Workloads choose the names of what they print; runs of numalab
/// measure the closed list [`Metric`](crate::Metric), which
/// [`Metric::quantity`](crate::Metric::quantity) converts.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Quantity {
    /// The metric's name within the workload: `time-per-op`, `throughput`, `SET rps`.
    pub metric: String,
    /// The unit as usually written: `us`, `GB/s`, `events/s`.
    pub unit: String,
    /// The direction that is better.
    pub better: Direction,
}

impl Quantity {
    /// Returns a quantity for which smaller values are better.
    pub fn lower(metric: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { metric: metric.into(), unit: unit.into(), better: Direction::LowerIsBetter }
    }

    /// Returns a quantity for which larger values are better.
    pub fn higher(metric: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { better: Direction::HigherIsBetter, ..Self::lower(metric, unit) }
    }

    /// Returns a reading of this quantity.
    pub fn at(self, value: f64) -> Reading {
        Reading { quantity: self, value }
    }
}
