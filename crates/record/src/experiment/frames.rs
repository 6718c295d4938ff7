//! Frames allocated and used by numalab's own kernel.

use numalab_topology::CpuId;
use serde::{Deserialize, Serialize};

use super::worker::size_name;
use super::{Axes, Description, Family};
use crate::metric::Metric;

/// A cell of the frame allocator: workers that allocate frames and use them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FramesCell {
    /// The workload: `test_numa`, `storm`, `guests`.
    pub work: String,
    /// The cpus that work.
    pub cpus: Vec<CpuId>,
    /// Bytes per cpu; 0 if the workload is defined by counts.
    pub size_bytes: u64,
}

impl Description for FramesCell {
    fn kind(&self) -> &'static str {
        "frames"
    }

    fn id(&self) -> String {
        format!("frames/{}/{}-cpus/{}", self.work, self.cpus.len(), size_name(self.size_bytes))
    }

    fn axes(&self) -> Axes {
        Axes {
            size_bytes: Some(self.size_bytes),
            kernel: Some(self.work.clone()),
            ..Axes::default()
        }
    }

    fn family(&self, _: Metric, _: u64) -> Option<Family> {
        None
    }
}
