//! The options of a `numalab measure` run: enough to plan it again when it is resumed.

use std::time::Duration;

use numalab_topology::{CpuSet, NodeSet};
use serde::{Deserialize, Serialize};

use crate::pages::Pages;

/// The time that a measurement may take.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Effort {
    /// About 10 s: a health check.
    Quick,
    /// About a minute.
    #[default]
    Normal,
    /// As long as a complete measurement needs.
    Thorough,
}

impl Effort {
    /// Returns the usual time limit of the measurement.
    pub const fn budget(self) -> Duration {
        Duration::from_secs(match self {
            Self::Quick => 12,
            Self::Normal => 60,
            Self::Thorough => 1_800,
        })
    }
}

/// The part of a machine that is measured, and the effort.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SurveyChoice {
    /// The effort: the time that the measurement may take.
    pub effort: Effort,
    /// The cpus that are measured.
    pub cpus: CpuSet,
    /// The nodes whose memory is measured.
    pub nodes: NodeSet,
    /// The page size for all cells that do not vary it.
    pub pages: Pages,
    /// The size beyond the caches, if another run fixes it; otherwise it follows from the run's own
    /// curve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beyond_bytes: Option<u64>,
}
