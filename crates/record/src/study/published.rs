//! Published figures that a study repeats.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The published values of a metric, from another machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The metric of the study that repeats them: `workload.metric`.
    pub metric: String,
    /// Their author and machine, and the number of runs.
    pub source: String,
    /// Their unit.
    pub unit: String,
    /// The values, by the names of treatments.
    pub values: BTreeMap<String, f64>,
}
