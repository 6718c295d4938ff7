//! Streams by all workers at once.

use serde::{Deserialize, Serialize};

use super::stream::{IsaName, StreamKernel};
use super::worker::{WorkerPlan, size_name, team_name};
use super::{Axes, Description, Family};
use crate::metric::Metric;
use crate::pages::Pages;
use crate::pattern::AccessPattern;

/// A bandwidth cell: all workers stream at once. Values count the bytes that the program moves, as
/// STREAM does: a store that allocates in the cache moves one more line, which is not counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BandwidthCell {
    pub workers: Vec<WorkerPlan>,
    /// The kernel that each runs.
    pub kernel: StreamKernel,
    /// The order in which a worker visits its memory.
    pub pattern: AccessPattern,
    /// The total size in bytes of one worker's buffers.
    pub size_bytes: u64,
    /// The page size.
    pub pages: Pages,
    /// The instruction set.
    pub isa: IsaName,
}

impl Description for BandwidthCell {
    fn kind(&self) -> &'static str {
        "bandwidth"
    }

    fn id(&self) -> String {
        format!(
            "bandwidth/{}/{}/{}/{}/{}/{}",
            self.kernel.name(),
            self.pattern,
            self.pages.name(),
            self.isa.0,
            team_name(&self.workers),
            size_name(self.size_bytes),
        )
    }

    fn workers(&self) -> Vec<WorkerPlan> {
        self.workers.clone()
    }

    fn axes(&self) -> Axes {
        Axes {
            size_bytes: Some(self.size_bytes),
            pages: Some(self.pages),
            pattern: Some(self.pattern),
            kernel: Some(self.kernel.name().to_owned()),
        }
    }

    fn family(&self, _: Metric, _: u64) -> Option<Family> {
        Some(Family::Bandwidth)
    }
}
