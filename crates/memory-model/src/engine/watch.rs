//! What is kept of accesses for who follows a program.

use alloc::vec::Vec;

use super::{Engine, Reached};
use crate::elsewhere::Elsewhere;
use crate::one_node::OneNode;
use crate::outcome::Outcome;
use crate::pipeline::Pipeline;
use crate::space::Placement;

impl Engine {
    /// The same, which watches too what shared caches would hold if all vCPUs were on one node.
    #[must_use]
    pub fn watching_one_node(mut self) -> Self {
        self.one_node = OneNode::new(&self.arguments.machine);
        self
    }

    /// The same, which watches too what vCPUs would wait by other placements of pages.
    #[must_use]
    pub fn watching_elsewhere(mut self, placements: &[Placement]) -> Self {
        self.elsewhere = placements.len();
        let machine = &self.arguments.machine;
        let walkers = machine.tlb.as_ref().map_or(0, |tlb| tlb.walkers);
        if let Some(core) = machine.core {
            let of = |placement| Elsewhere::new(Pipeline::new(core, walkers), placement);
            let cores = || placements.iter().map(of).collect();
            self.vcpus.iter().for_each(|vcpu| *vcpu.elsewhere.lock() = cores());
        }
        self
    }

    /// How much longer a vCPU would have waited by each of these placements, in ps; none without a
    /// model of its core.
    pub fn later_ps(&self, vcpu: usize) -> Vec<i64> {
        self.vcpus[vcpu].elsewhere.lock().iter().map(Elsewhere::later_ps).collect()
    }

    /// How a vCPU's last access went.
    #[inline]
    pub fn outcome(&self, vcpu: usize) -> Outcome {
        self.vcpus[vcpu].last.get()
    }

    /// How long a vCPU has waited for memory and caches in this phase: its time, but for that of
    /// its instructions.
    #[inline]
    pub fn waited_ps(&self, vcpu: usize) -> u64 {
        let figures = self.figures(vcpu);
        figures.time_ps.get().saturating_sub(figures.instructions.get() * self.ps_own)
    }

    /// How long a vCPU has been busy in all: its instructions, and what it waited for them.
    pub fn busy_ps(&self, vcpu: usize) -> u64 {
        self.counters.phases().map(|(_, vcpus)| vcpus[vcpu].time_ps.get()).sum()
    }

    /// How long a vCPU has been busy in this phase.
    #[inline]
    pub fn phase_ps(&self, vcpu: usize) -> u64 {
        self.figures(vcpu).time_ps.get()
    }

    /// Of a vCPU's accesses to a node in this phase: how many reached memory, what they cost, and
    /// what of that was waiting for bandwidth.
    #[inline]
    pub fn reached(&self, vcpu: usize, node: usize) -> Reached {
        let figures = &self.figures(vcpu).nodes[node];
        Reached {
            misses: figures.misses[0].get() + figures.misses[1].get(),
            cost_ps: figures.cost_ps.get(),
            queue_ps: figures.queue_ps.get(),
        }
    }
}
