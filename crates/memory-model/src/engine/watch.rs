//! Follows the threads of a program, also under alternative placements.

use super::hierarchy::{Hierarchy, Reply, Transfer};
use super::quick::{By, Hit};
use super::{Access, Active, Engine};
use crate::arguments::Alternative;
use crate::counters::Kind;
use crate::elsewhere::{Cores, Elsewhere, Shadow, There, Went};
use crate::pipeline::stores::Bytes;
use crate::pipeline::{Act, Asked, Line};
use crate::regrouped::Regrouped;
use crate::seats::Seats;
use crate::stretches::Stretches;

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

    /// Returns the level of the vCPU's caches or the shared ones that would have the line under an
    /// alternative placement.
    fn level_elsewhere(&self, cores: Cores, found: &Reply, own: usize) -> Option<usize> {
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
        (kind, by): (Kind, &By),
        moved: Option<(u64, &[There])>,
        shadow: &mut Shadow,
    ) {
        let memory = self.memory;
        let instruction = self.state.instructions - u64::from(by.behind);
        let bytes = Bytes::new(address, bytes);
        let act = Act { by: by.accessor, instruction, kind, bytes };
        let line_of = |address: u64| address >> memory.engine.line_shift;
        let virtual_line = line_of(moved.map_or(address, |(page, _)| page));
        let asked = Asked { act, line: line_of(address), virtual_line };
        let Hit { reached_ps, waited_ps, .. } = hit;
        for (at, core) in shadow.cores.iter_mut().enumerate() {
            let translation =
                moved.and_then(|(page, there)| core.translate(page, address, there[at]));
            let walk_ps = translation.map_or(0, |of| memory.assumed_ps(of));
            let went = Went { asked, reached_ps, waited_ps, walk_ps };
            core.access(went, (Line::Nearest, memory.nearest_ps), 0);
        }
    }
}

impl Hierarchy<'_> {
    /// Repeats an access with its page elsewhere, given the reply to the actual one and its time
    /// beyond the latency of memory.
    pub fn alternatives(
        &self,
        access: &Access,
        went: Went,
        (reply, beyond_ps): (&Reply, u64),
        (shadow, elsewhere): (&mut Shadow, &[There]),
    ) {
        let (engine, own, thread) = (self.engine, self.caches.len(), shadow.thread);
        for (core, there) in shadow.cores.iter_mut().zip(elsewhere) {
            let cores = core.cores();
            let level = match reply.past {
                true => None,
                false => engine.level_elsewhere(cores, reply, own),
            };
            let takes_ps = match (reply.transfer, level) {
                (Some(transfer), _) => engine.transfer_elsewhere(thread, cores, transfer),
                (None, Some(level)) => engine.hit_ps[level],
                (None, None) => {
                    let initiator = match cores {
                        Cores::On(node) => node,
                        Cores::Packed => engine.packed_node(thread).unwrap_or(self.home),
                        Cores::Stay => self.home,
                    };
                    let memory_ps = engine.costs.memory_ps(initiator, there.node(), access.kind);
                    memory_ps.saturating_add(beyond_ps)
                }
            };
            let translation = core.translate(access.virtual_address, access.address, *there);
            let walk_ps = translation.map_or(went.walk_ps, |of| self.assumed_ps(of));
            let line = (reply.line(level, own), self.nearest_ps);
            core.access(Went { walk_ps, ..went }, line, takes_ps);
        }
    }
}
