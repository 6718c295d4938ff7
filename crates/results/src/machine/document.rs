//! A machine file and a run side by side, in JSON.

use serde::Serialize;

/// Figures of a machine file and of a run, side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedMachine {
    /// Differences up to this percentage are none.
    pub margin_percent: f64,
    /// Every figure that either has.
    pub pairs: Vec<FigurePair>,
}

/// One figure of both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FigurePair {
    /// What it is: `latency from node 0 to node 1`.
    pub what: String,
    /// Its unit.
    pub unit: &'static str,
    /// What the machine file says; `None` where it does not.
    pub file: Option<f64>,
    /// What the run measured; `None` where it did not.
    pub result: Option<f64>,
    /// How far the result is above the file, in percent.
    pub percent: Option<f64>,
}
