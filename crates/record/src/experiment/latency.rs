//! A chase of dependent loads.

use serde::{Deserialize, Serialize};

use super::worker::{WorkerPlan, size_name, worker_name};
use super::{Axes, Description, Family};
use crate::metric::Metric;
use crate::pages::Pages;
use crate::pattern::AccessPattern;

/// The largest size that counts as cached, as a multiple of the largest cache.
const BEYOND_CACHE: u64 = 2;

/// The workers that chase at the same time.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Team {
    /// This worker only.
    #[default]
    Serial,
    /// All workers of the same plan and size.
    Concurrent,
}

/// A latency cell: a chase by one worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LatencyCell {
    pub worker: WorkerPlan,
    /// The buffer's length in bytes.
    pub size_bytes: u64,
    /// The order of visits.
    pub pattern: AccessPattern,
    /// The page size.
    pub pages: Pages,
    /// The workers that chase at the same time.
    pub team: Team,
}

impl Description for LatencyCell {
    fn kind(&self) -> &'static str {
        "latency"
    }

    fn id(&self) -> String {
        format!(
            "latency/{}/{}/{}/{}{}",
            self.pattern,
            self.pages.name(),
            worker_name(self.worker),
            size_name(self.size_bytes),
            if self.team == Team::Concurrent { "/concurrent" } else { "" },
        )
    }

    fn workers(&self) -> Vec<WorkerPlan> {
        vec![self.worker]
    }

    fn axes(&self) -> Axes {
        Axes {
            size_bytes: Some(self.size_bytes),
            pages: Some(self.pages),
            pattern: Some(self.pattern),
            kernel: None,
        }
    }

    fn family(&self, _: Metric, largest_cache_bytes: u64) -> Option<Family> {
        let is_cached = self.size_bytes <= largest_cache_bytes.saturating_mul(BEYOND_CACHE);
        Some(if is_cached { Family::CacheLatency } else { Family::MemoryLatency })
    }
}
