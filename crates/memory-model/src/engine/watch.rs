//! What is kept of accesses for who follows a program.

use super::charge::InCaches;
use super::coherence::Transfer;
use super::{Access, Active, Engine};
use crate::arguments::Beside;
use crate::elsewhere::{Cores, Elsewhere, Line, Shadow, There, Went};
use crate::regrouped::Regrouped;
use crate::seats::Seats;
use crate::tlb::Translation;

impl Engine {
    /// The same for the threads of a program, which whoever calls keeps side by side, and which may
    /// be followed elsewhere too ([`Self::shadow`]).
    #[must_use]
    pub fn for_threads(mut self) -> Self {
        self.front = None;
        self.is_plain = false;
        let (machine, cpus) = (&self.arguments.machine, &self.arguments.threads);
        let one = Seats::on_one_node(machine, cpus);
        self.one_node = one.and_then(|seats| Regrouped::new(machine, &seats));
        if self.arguments.beside.contains(&Beside::Packed) {
            let seats = Seats::packed(machine, cpus);
            let shared = Regrouped::new(machine, &seats);
            self.packed = Some((seats, shared));
        }
        self
    }

    /// The thread of this number elsewhere: by the placements that are watched, if cores are modelled.
    pub fn shadow(&self, thread: usize) -> Shadow {
        let Self { arguments, .. } = self;
        let of = |beside: &Beside| Elsewhere::new(&arguments.machine, beside);
        Shadow { thread, cores: arguments.beside.iter().filter_map(of).collect() }
    }

    /// The node of the thread of this number if they fill node after node, where that is watched.
    pub fn packed_node(&self, thread: usize) -> Option<usize> {
        self.packed.as_ref().map(|(seats, _)| seats.of(thread).node)
    }

    /// What a line takes from another vCPU to a thread if they are elsewhere.
    fn transfer_elsewhere(&self, thread: usize, cores: Cores, transfer: Transfer) -> u64 {
        let packed = || {
            let (seats, _) = self.packed.as_ref()?;
            // Of a higher thread the seat of one that is 256 lower.
            self.between_ps(seats.of(thread), seats.of(usize::from(transfer.from)))
        };
        match cores {
            Cores::Stay => transfer.cost_ps,
            Cores::On(node) => self.transfer_on(node, transfer),
            Cores::Packed => packed().unwrap_or(transfer.cost_ps),
        }
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
                let entries = (end - first) as u64 * (1 + self.assumed_nested);
                asked_ps + self.walk_ps + entries * entry_ps
            }
        }
    }

    /// Of a vCPU's caches and the shared ones, what an access would find where its thread would be.
    fn level_elsewhere(&self, cores: Cores, found: InCaches, own: usize) -> Option<usize> {
        let has = match cores {
            Cores::On(_) => Some(found.on_one_node),
            Cores::Packed if self.packed.is_some() => Some(found.packed),
            Cores::Packed | Cores::Stay => None,
        };
        // Caches of its own have what they have, on whatever node it is.
        match (has, found.level) {
            (Some(has), level) if level.is_none_or(|level| level >= own) => {
                has.then(|| self.hit_ps.len() - 1)
            }
            (_, level) => level,
        }
    }
}

impl Active<'_> {
    /// The node of a thread that is elsewhere.
    pub(super) fn home_by(&self, cores: Cores, thread: usize) -> usize {
        match cores {
            Cores::On(node) => node,
            Cores::Packed => self.engine.packed_node(thread).unwrap_or(self.home),
            Cores::Stay => self.home,
        }
    }

    /// The same access with its page elsewhere: what was transferred, how long after it was asked
    /// for that began, which caches had it, and what was waited for bandwidth.
    pub(super) fn beside(
        &self,
        access: Access,
        went: Went,
        (transfer, after_ps, found, queue_ps): (Option<Transfer>, u64, InCaches, u64),
        (shadow, elsewhere): (&mut Shadow, &[There]),
    ) {
        let engine = self.engine;
        let nearest_ps = self.nearest_ps;
        let thread = shadow.thread;
        for (core, there) in shadow.cores.iter_mut().zip(elsewhere) {
            let initiator = self.home_by(core.cores(), thread);
            let level = engine.level_elsewhere(core.cores(), found, self.caches.len());
            let line = match (transfer, level) {
                (Some(transfer), _) => {
                    let takes_ps = engine.transfer_elsewhere(thread, core.cores(), transfer);
                    Line::Core { after_ps, takes_ps }
                }
                (None, Some(0)) => Line::Nearest,
                (None, Some(level)) => Line::Farther { takes_ps: engine.hit_ps[level] },
                (None, None) => {
                    let memory_ps = engine.costs.memory_ps(initiator, there.node(), access.kind);
                    Line::Farther { takes_ps: memory_ps.saturating_add(queue_ps) }
                }
            };
            let walk_ps = core.translate(access.virtual_address, access.address, *there);
            let walk_ps = walk_ps.map_or(went.walk_ps, |of| engine.translated_ps(self.vcpu, of));
            core.access(Went { walk_ps, ..went }, line, nearest_ps);
        }
    }
}
