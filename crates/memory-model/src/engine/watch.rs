//! What is kept of accesses for who follows a program.

use alloc::vec::Vec;

use super::coherence::Transfer;
use super::{Access, Engine, Reached};
use crate::arguments::Beside;
use crate::elsewhere::{Cores, Elsewhere, Line, There, Went};
use crate::outcome::Outcome;
use crate::regrouped::Regrouped;
use crate::seats::Seats;
use crate::tlb::Translation;

impl Engine {
    /// The same, which watches too what shared caches would hold if all vCPUs were on one node.
    #[must_use]
    pub fn watching_one_node(mut self) -> Self {
        self.one_node = Regrouped::on_one_node(&self.arguments.machine);
        self
    }

    /// The same, which watches too what vCPUs would wait otherwise.
    #[must_use]
    pub fn watching_elsewhere(mut self, beside: &[Beside]) -> Self {
        self.elsewhere = beside.len();
        let machine = &self.arguments.machine;
        if beside.contains(&Beside::Packed) {
            let seats = Seats::packed(machine, self.arguments.threads.len());
            let shared = Regrouped::new(machine, seats.groups());
            self.packed = Some((seats, shared));
        }
        let cores = || beside.iter().filter_map(|of| Elsewhere::new(machine, of)).collect();
        self.vcpus.iter().for_each(|vcpu| *vcpu.elsewhere.lock() = cores());
        self
    }

    /// The same access with its page elsewhere: what was transferred, how long after it was asked
    /// for that began, which cache had it, and what was waited for bandwidth.
    pub(super) fn beside(
        &self,
        access: Access,
        went: Went,
        (transfer, after_ps, found, queue_ps): (Option<Transfer>, u64, Option<usize>, u64),
        elsewhere: &[There],
    ) {
        if elsewhere.is_empty() {
            return;
        }
        let nearest_ps = self.hit_ps.first().copied().unwrap_or(0);
        let state = &self.vcpus[access.vcpu];
        let home = self.arguments.machine.cpus[access.vcpu];
        let on_one_node = state.last.get().on_one_node;
        let seats = self.packed.as_ref().map(|(seats, _)| seats);
        let mut cores = state.elsewhere.lock();
        for (core, there) in cores.iter_mut().zip(elsewhere) {
            let (initiator, has) = match (core.cores(), seats) {
                (Cores::On(node), _) => (node, Some(on_one_node)),
                (Cores::Packed, Some(of)) => (of.of(access.vcpu).node, Some(state.last.packed())),
                _ => (home, None),
            };
            // Caches of its own have what they have, on whatever node it is.
            let level = match (has, found) {
                (Some(has), level) if level.is_none_or(|level| level >= state.caches.len()) => {
                    has.then(|| self.hit_ps.len() - 1)
                }
                (_, level) => level,
            };
            let line = match (transfer, level) {
                (Some(transfer), _) => {
                    let takes_ps = self.transfer_elsewhere(access.vcpu, core.cores(), transfer);
                    Line::Core { after_ps, takes_ps }
                }
                (None, Some(0)) => Line::Nearest,
                (None, Some(level)) => Line::Farther { takes_ps: self.hit_ps[level] },
                (None, None) => {
                    let memory_ps = self.costs.memory_ps(initiator, there.node, access.kind);
                    Line::Farther { takes_ps: memory_ps.saturating_add(queue_ps) }
                }
            };
            let walk_ps = core.translate(access.virtual_address, access.address, *there);
            let walk_ps = walk_ps.map_or(went.walk_ps, |of| self.translated_ps(access.vcpu, of));
            core.access(Went { walk_ps, ..went }, line, nearest_ps);
        }
    }

    /// What a line takes from another vCPU to this one if they are elsewhere.
    fn transfer_elsewhere(&self, vcpu: usize, cores: Cores, transfer: Transfer) -> u64 {
        let packed = || {
            let (seats, _) = self.packed.as_ref()?;
            self.between_ps(seats.of(vcpu), seats.of(transfer.from))
        };
        match cores {
            Cores::Stay => transfer.cost_ps,
            Cores::On(node) => self.transfer_on(node, transfer),
            Cores::Packed => packed().unwrap_or(transfer.cost_ps),
        }
    }

    /// The node of a vCPU if they fill node after node, where that is watched.
    pub fn packed_node(&self, vcpu: usize) -> Option<usize> {
        self.packed.as_ref().map(|(seats, _)| seats.of(vcpu).node)
    }

    /// What a translation takes whose page tables nobody reads: their entries are taken to be in the
    /// farthest of the vCPU's own caches, since those of huge pages are few.
    pub(super) fn translated_ps(&self, vcpu: usize, translation: Translation) -> u64 {
        match translation {
            Translation::Hit(level) => self.tlb_hit_ps[level],
            Translation::Walk { first, end } => {
                let own = self.vcpus[vcpu].caches.len();
                let entry_ps = own.checked_sub(1).map_or(0, |last| self.hit_ps[last]);
                let asked_ps = self.tlb_hit_ps.last().copied().unwrap_or(0);
                asked_ps + (end - first) as u64 * entry_ps
            }
        }
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
