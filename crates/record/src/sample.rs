//! A measured value.

use serde::{Deserialize, Serialize};

use crate::cell::CellId;
use crate::metric::Metric;

/// The value of one window, as measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Sample {
    /// The cell that the sample belongs to.
    pub cell: CellId,
    pub metric: Metric,
    /// The position in time order within cell and metric, from 0.
    pub index: u32,
    /// The value, in the metric's unit.
    pub value: f64,
    /// The start of the window, in nanoseconds since the run's start.
    pub start_ns: u64,
    /// The duration of the window, in nanoseconds.
    pub duration_ns: u64,
    /// The work done in the window: loads, bytes or round trips.
    pub work: u64,
    /// The disturbance of the window, if any; detected without regard to the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<String>,
}
