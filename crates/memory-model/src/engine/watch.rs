//! Follows the threads of a program, also under alternative placements.

use super::coherence::Transfer;
use super::hierarchy::InCaches;
use super::quick::{By, Hit};
use super::{Access, Active, Engine};
use crate::arguments::Alternative;
use crate::counters::Kind;
use crate::elsewhere::{Cores, Elsewhere, Line, Shadow, There, Went};
use crate::pipeline::stores::Bytes;
use crate::pipeline::{Act, Miss};
use crate::regrouped::Regrouped;
use crate::seats::Seats;
use crate::stretches::Stretches;
use crate::tlb::Translation;

impl Engine {
    /// Returns the model for threads of a program, which the caller keeps aligned in time, and
    /// which may also be simulated under alternative placements ([`Self::shadow`]).
    #[must_use]
    pub fn for_threads(mut self) -> Self {
        self.front = None;
        self.is_plain = false;
        let (machine, cpus) = (&self.arguments.machine, &self.arguments.threads);
        let one = Seats::on_one_node(machine, cpus);
        self.one_node = one.and_then(|seats| Regrouped::new(machine, &seats));
        if self.arguments.alternatives.contains(&Alternative::Packed) {
            let seats = Seats::packed(machine, cpus);
            let shared = Regrouped::new(machine, &seats);
            self.packed = Some((seats, shared));
        }
        self
    }

    /// Returns the thread with this number under the alternative placements; empty without a model
    /// of cores.
    pub fn shadow(&self, thread: usize) -> Shadow {
        let Self { arguments, .. } = self;
        let of = |alternative: &Alternative| Elsewhere::new(&arguments.machine, alternative);
        let cores = arguments.alternatives.iter().filter_map(of).collect();
        // Without a core, instructions take no longer to simulate than to pass.
        let is_exact = arguments.exact || arguments.machine.core.is_none();
        let stretches = if is_exact { Stretches::endless() } else { Stretches::of(thread) };
        Shadow { thread, cores, stretches, strays: false }
    }

    /// Returns the node of this thread if threads fill node after node; `None` if that is not
    /// followed.
    pub fn packed_node(&self, thread: usize) -> Option<usize> {
        self.packed.as_ref().map(|(seats, _)| seats.of(thread).node)
    }

    /// Returns the cost of a transfer from another vCPU under an alternative placement of threads.
    fn transfer_elsewhere(&self, thread: usize, cores: Cores, transfer: Transfer) -> u64 {
        let packed = || {
            let (seats, _) = self.packed.as_ref()?;
            // The directory stores eight bits of a thread's number, so a thread above 255 gets the
            // seat of a thread with the same lowest bits.
            self.between_ps(seats.of(thread), seats.of(usize::from(transfer.from)))
        };
        match cores {
            Cores::Stay => transfer.cost_ps,
            Cores::On(node) => self.transfer_on(node, transfer),
            Cores::Packed => packed().unwrap_or(transfer.cost_ps),
        }
    }

    /// Returns the time of a translation without simulating accesses to page tables: entries are
    /// assumed to be in the vCPU's farthest private cache, because huge pages have few entries.
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

    /// Returns the level of the vCPU's caches or the shared ones that would have the line under an
    /// alternative placement.
    fn level_elsewhere(&self, cores: Cores, found: InCaches, own: usize) -> Option<usize> {
        let has = match cores {
            Cores::On(_) => Some(found.on_one_node),
            Cores::Packed if self.packed.is_some() => Some(found.packed),
            Cores::Packed | Cores::Stay => None,
        };
        // Private caches have the same lines on any node.
        match (has, found.level) {
            (Some(has), level) if level.is_none_or(|level| level >= own) => {
                has.then(|| self.hit_ps.len() - 1)
            }
            (_, level) => level,
        }
    }
}

impl Active<'_> {
    /// Repeats an access that took the fast path ([`Self::again`]); `moved` has the access's
    /// virtual address and the locations of its page, if the page differs from the previous
    /// access's.
    pub fn again_with_alternatives(
        &self,
        hit: Hit,
        (address, bytes): (u64, u8),
        (kind, position, by): (Kind, u32, &By),
        moved: Option<(u64, &[There])>,
        shadow: &mut Shadow,
    ) {
        let instruction = self.state.instructions - u64::from(by.behind);
        let act = Act { position, instruction, kind, bytes: Bytes::new(address, bytes) };
        let line = address >> self.engine.line_shift;
        let Hit { reached_ps, waited_ps, .. } = hit;
        let virtual_line = moved.map_or(line, |(page, _)| page >> self.engine.line_shift);
        let streamed = (position, virtual_line);
        let went = Went { act, line, streamed, reached_ps, waited_ps, walk_ps: 0 };
        for (at, core) in shadow.cores.iter_mut().enumerate() {
            let translation =
                moved.and_then(|(page, there)| core.translate(page, address, there[at]));
            let walk_ps = translation.map_or(0, |of| self.engine.translated_ps(self.vcpu, of));
            core.access(Went { walk_ps, ..went }, Line::Nearest, self.nearest_ps);
        }
    }

    /// Returns the node of a thread under an alternative placement.
    pub(super) fn home_by(&self, cores: Cores, thread: usize) -> usize {
        match cores {
            Cores::On(node) => node,
            Cores::Packed => self.engine.packed_node(thread).unwrap_or(self.home),
            Cores::Stay => self.home,
        }
    }

    /// Repeats an access with its page elsewhere, given the transfer and its delay, the caches that
    /// had the line, and the time beyond the latency of memory.
    pub(super) fn alternatives(
        &self,
        access: Access,
        went: Went,
        (transfer, after_ps, found, beyond_ps): (Option<Transfer>, u64, InCaches, u64),
        (shadow, elsewhere): (&mut Shadow, &[There]),
    ) {
        let engine = self.engine;
        let nearest_ps = self.nearest_ps;
        let thread = shadow.thread;
        for (core, there) in shadow.cores.iter_mut().zip(elsewhere) {
            let initiator = self.home_by(core.cores(), thread);
            let level = engine.level_elsewhere(core.cores(), found, self.caches.len());
            let miss = Miss::new(level, self.caches.len(), found.goes_back);
            let line = match (transfer, level) {
                (Some(transfer), _) => {
                    let takes_ps = engine.transfer_elsewhere(thread, core.cores(), transfer);
                    match transfer.is_old {
                        true => Line::Farther { takes_ps, miss },
                        false => Line::Core { after_ps, takes_ps },
                    }
                }
                (None, Some(0)) => Line::Nearest,
                (None, Some(level)) => Line::Farther { takes_ps: engine.hit_ps[level], miss },
                (None, None) => {
                    let memory_ps = engine.costs.memory_ps(initiator, there.node(), access.kind);
                    Line::Farther { takes_ps: memory_ps.saturating_add(beyond_ps), miss }
                }
            };
            let walk_ps = core.translate(access.virtual_address, access.address, *there);
            let walk_ps = walk_ps.map_or(went.walk_ps, |of| engine.translated_ps(self.vcpu, of));
            core.access(Went { walk_ps, ..went }, line, nearest_ps);
        }
    }
}
