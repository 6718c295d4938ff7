//! A chase while other workers put load on the memory.

use serde::{Deserialize, Serialize};

use super::stream::StreamKernel;
use super::worker::{WorkerPlan, size_name, team_name, worker_name};
use super::{Axes, Description, Family};
use crate::metric::Metric;
use crate::pages::Pages;

/// A loaded-latency cell: one chaser against load workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LoadedCell {
    pub chaser: WorkerPlan,
    /// The load workers.
    pub load: Vec<WorkerPlan>,
    /// The kernel that each load worker runs.
    pub kernel: StreamKernel,
    /// The pauses of a load worker per 16 KiB of an array: 0 for full speed, `None` for no load.
    pub delay: Option<u32>,
    /// The buffer's length in bytes, for the chaser and each load worker.
    pub size_bytes: u64,
    /// The page size.
    pub pages: Pages,
}

impl Description for LoadedCell {
    fn kind(&self) -> &'static str {
        "loaded"
    }

    fn id(&self) -> String {
        format!(
            "loaded/{}/{}/{}/against-{}/{}/{}",
            self.kernel.name(),
            self.pages.name(),
            worker_name(self.chaser),
            team_name(&self.load),
            size_name(self.size_bytes),
            self.delay.map_or("idle".to_owned(), |delay| format!("delay{delay}")),
        )
    }

    fn workers(&self) -> Vec<WorkerPlan> {
        [&[self.chaser], self.load.as_slice()].concat()
    }

    fn axes(&self) -> Axes {
        Axes {
            size_bytes: Some(self.size_bytes),
            pages: Some(self.pages),
            pattern: None,
            kernel: Some(self.kernel.name().to_owned()),
        }
    }

    fn family(&self, metric: Metric, _: u64) -> Option<Family> {
        Some(match metric {
            Metric::Bandwidth => Family::Bandwidth,
            _ => Family::MemoryLatency,
        })
    }
}
