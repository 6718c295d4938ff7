//! One measured value.

use serde::{Deserialize, Serialize};

use crate::cell::CellId;
use crate::metric::Metric;

/// One window's value, as measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sample {
    /// The cell it belongs to.
    pub cell: CellId,
    /// What was measured.
    pub metric: Metric,
    /// Position in time order within cell and metric, from 0.
    pub index: u32,
    /// The value in the metric's unit.
    pub value: f64,
    /// When the window began, in nanoseconds since the run's start.
    pub start_ns: u64,
    /// How long the window took in nanoseconds.
    pub duration_ns: u64,
    /// What was done in it: loads, bytes or round trips.
    pub work: u64,
    /// What disturbed the window, if anything did; found without looking at the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<String>,
}
