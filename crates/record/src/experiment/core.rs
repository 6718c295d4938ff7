//! L1 load-to-use relative to a dependent add, the core clock, an atomic addition, and page faults.

use numalab_topology::{CpuId, Machine};
use serde::{Deserialize, Serialize};

use super::{Description, Family};
use crate::metric::Metric;

/// A cell of one core: its clock, L1 latency and atomic additions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CoreCell {
    pub cpu: CpuId,
}

impl CoreCell {
    /// Maximum number of pages read, one line in each: more than the last-level TLB of most
    /// processors holds.
    const MOST_PAGES: u64 = 8192;
    const LINE_BYTES: u64 = 64;

    /// Returns the number of pages whose lines are read, one in each: half of the L2 holds these
    /// lines, so that the reads wait for page walks and not for lines.
    pub fn pages_read(machine: &Machine) -> u64 {
        let l2 = machine.caches.iter().filter(|cache| cache.level == 2);
        let least_bytes = l2.filter_map(|cache| cache.size_bytes).min();
        let most = least_bytes.map_or(u64::MAX, |bytes| bytes / 2 / Self::LINE_BYTES);
        most.clamp(1, Self::MOST_PAGES)
    }
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
