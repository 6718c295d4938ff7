//! The resources of a run of `numalab measure`.

use numalab_record::{Effort, Pages, WorkerPlan};
use numalab_topology::Machine;

use crate::scope::Scope;

/// The machine, the part of it that may be used, and how much is measured.
#[derive(Clone, Debug)]
pub(crate) struct Survey<'a> {
    pub machine: &'a Machine,
    /// The cpus and nodes that may be used.
    pub scope: Scope,
    pub effort: Effort,
    /// The pages of all buffers except those that compare page sizes.
    pub pages: Pages,
}

impl Survey<'_> {
    /// Returns the first cpu in scope, with the memory nearest to it.
    pub(crate) fn first_worker(&self) -> WorkerPlan {
        let cpu = self.scope.cpus.first().copied().unwrap_or_default();
        WorkerPlan { cpu, node: self.scope.nearest_node(self.machine, cpu) }
    }

    /// Returns a worker's largest buffer, which leaves room for the system and the other workers.
    pub(crate) fn most_bytes_per_worker(&self) -> u64 {
        // One more than the workers, which leaves room for the system.
        let workers = self.scope.cpus.len() as u64 + 1;
        let of_node = self.scope.nodes.iter().filter_map(|&node| self.machine.node(node));
        let smallest = of_node.map(|node| node.memory_bytes / 4).min().unwrap_or(1 << 30);
        let free = (self.machine.memory_bytes() / 2 / workers).min(smallest);
        // Whole 2 MiB pages, so that large pages can back the buffer.
        (free & !((2 << 20) - 1)).max(4 << 20)
    }
}
