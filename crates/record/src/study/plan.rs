//! The treatments of a study, and their order.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::setting::Setting;

/// A treatment: one level of each factor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Treatment {
    /// The treatment's name: `numa_balancing=1 pages=2m`.
    pub name: String,
    /// The index of the level of each factor, in the study's order.
    pub levels: Vec<usize>,
    /// The settings of all its levels, merged.
    pub settings: BTreeMap<String, Setting>,
}

/// The arm of a block that a sample belongs to.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Arm {
    /// A treatment that is judged.
    Main,
    /// The repeated baseline (the A/A arm).
    Again,
}

/// A treatment's turn in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Visit {
    /// The index of the treatment.
    pub treatment: usize,
    /// The arm: judged, or the repeated baseline.
    pub arm: Arm,
}
