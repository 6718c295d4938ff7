//! The part of a machine that a command measures.

use numalab_record::{Pages, WorkerPlan};
use numalab_topology::{CpuId, Machine};

use crate::scope::Scope;

/// A machine and the part of it that a command measures.
#[derive(Clone, Debug)]
pub struct Target {
    pub machine: Machine,
    pub scope: Scope,
    pub pages: Pages,
}

impl Target {
    /// Returns a worker on this cpu and its nearest memory.
    pub fn nearest(&self, cpu: CpuId) -> WorkerPlan {
        WorkerPlan { cpu, node: self.scope.nearest_node(&self.machine, cpu) }
    }
}
