//! L1 load-to-use relative to a dependent add, the core clock, and an atomic addition.

use numalab_topology::CpuId;
use serde::{Deserialize, Serialize};

use super::{Description, Family};
use crate::metric::Metric;

/// A core cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CoreCell {
    /// The cpu.
    pub cpu: CpuId,
}

impl Description for CoreCell {
    fn kind(&self) -> &'static str {
        "core"
    }

    fn id(&self) -> String {
        format!("core/cpu{}", self.cpu)
    }

    fn family(&self, _: Metric, _: u64) -> Option<Family> {
        Some(Family::Core)
    }
}
