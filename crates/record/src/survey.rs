//! What a run of `numalab measure` was asked for: enough to plan it again when it goes on.

use numalab_topology::{CpuSet, NodeSet};
use serde::{Deserialize, Serialize};

use crate::pages::Pages;

/// How much is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Effort {
    /// About 10 s: a health check.
    Quick,
    /// About a minute.
    #[default]
    Normal,
    /// As long as it takes to see everything.
    Thorough,
}

/// The part of a machine that is measured, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SurveyChoice {
    /// How much is measured.
    pub effort: Effort,
    /// The cpus.
    pub cpus: CpuSet,
    /// The nodes with the memory.
    pub nodes: NodeSet,
    /// The pages for everything that is not about pages.
    pub pages: Pages,
    /// The size beyond the caches, where another run fixes it; else the run's own curve does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beyond_bytes: Option<u64>,
}
