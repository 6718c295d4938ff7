//! Charges an access: caches, memory and queues, and the overlap with other accesses.

use super::coherence::Transfer;
use super::hierarchy::InCaches;
use super::{Access, Active, Engine};
use crate::arguments::Mode;
use crate::counters::Kind;
use crate::elsewhere::{Shadow, There, Went};
use crate::outcome::{Effect, Known, NOT_WRITTEN, Outcome, Source};
use crate::pipeline::stores::Bytes;
use crate::pipeline::{Act, Miss, Times};
use crate::tlb::TlbPlace;

/// Returns the source of a line that is transferred from another vCPU, or was found in a cache.
fn source(transfer: Option<Transfer>, found: Option<usize>) -> Source {
    match (transfer, found) {
        (Some(Transfer { far: true, .. }), _) => Source::Far,
        (Some(_), _) => Source::Near,
        (None, Some(_)) => Source::Cache,
        (None, None) => Source::Memory,
    }
}

/// The cost of an access that misses the nearest cache.
#[derive(Clone, Copy, Debug, Default)]
struct Past {
    /// All of it.
    takes_ps: u64,
    /// Waiting for bandwidth.
    queue_ps: u64,
    /// Cost of leaving the pages that were read last.
    page_ps: u64,
}

/// An access that a core has reached.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reached {
    /// Number of the access's instruction, and the times at which it could be issued and was.
    pub instruction: u64,
    pub reached_ps: u64,
    pub came_ps: u64,
    /// Time at which the access can begin.
    pub issue_ps: u64,
    /// Time of the page walk, the place of the translation after it, and the time at which it is
    /// known.
    pub walk_ps: u64,
    pub translated: TlbPlace,
    pub begin_ps: u64,
}

impl Active<'_> {
    /// Accesses memory through caches and queues, on a machine without overlap of misses.
    pub(super) fn modelled(&mut self, access: Access, target: usize) -> Outcome {
        let (mut outcome, cost_ps) = self.served_alone(access, target);
        if cost_ps == 0 {
            return outcome;
        }
        let instruction = self.state.instruction(access.position);
        let (most, ps_each) = (self.engine.arguments.overlap, self.engine.ps_each);
        let exposed_ps = self.state.overlap.exposed_ps(cost_ps, instruction, most, ps_each);
        self.figures.time_ps.add(exposed_ps);
        (outcome.waited_ps, outcome.own_wait_ps) = (exposed_ps, exposed_ps);
        outcome.done_ps += exposed_ps;
        outcome.effect = self.takes(exposed_ps, cost_ps);
        outcome
    }

    /// Accesses memory through caches and queues as if nothing else were in flight; returns the cost
    /// with that of the translation.
    pub(super) fn served_alone(&mut self, access: Access, target: usize) -> (Outcome, u64) {
        let (translation_ps, translated) = self.translation_ps(access, self.time_ps.get());
        let time_ps = self.time_ps.get() + translation_ps;
        let (found, transfer) = self.looked_up(access, time_ps);
        let missed = transfer.is_none() && found.level.is_none();
        let (cost_ps, queue_ps) = match transfer {
            Some(transfer) => (transfer.begin_ps - time_ps + transfer.cost_ps, 0),
            None => {
                let past = self.past_nearest(access, time_ps, target, (None, found.level));
                (past.takes_ps, past.queue_ps)
            }
        };
        let outcome = Outcome {
            source: source(transfer, found.level),
            missed,
            own_cache: found.own,
            on_one_node: found.on_one_node,
            cost_ps,
            queue_ps,
            done_ps: time_ps,
            known: (!found.leaves).then(|| self.known(&access, translated)),
            ..Outcome::default()
        };
        let cost_ps = translation_ps + cost_ps;
        self.figures.cost_ps.add(cost_ps);
        (outcome, cost_ps)
    }

    /// Charges a cost, partly exposed, to the vCPU; returns the required action.
    fn takes(&mut self, exposed_ps: u64, cost_ps: u64) -> Effect {
        let mode = self.engine.arguments.mode;
        let taken_ps = if mode == Mode::Sleep { cost_ps } else { exposed_ps };
        self.time_ps.add(taken_ps);
        let owed_ns = self.state.clock_ns(taken_ps.cast_signed()).cast_unsigned();
        match mode {
            Mode::Count => Effect::None,
            Mode::Virtual => Effect::Advance(owed_ns),
            Mode::Sleep => self.state.debt.owe(owed_ns).map_or(Effect::None, Effect::Sleep),
        }
    }

    /// Accesses memory through caches and queues, overlapping with other accesses of the vCPU.
    pub(super) fn piped(
        &mut self,
        access: Access,
        target: usize,
        shadow: Option<(&mut Shadow, &[There])>,
    ) -> Outcome {
        let line = access.address >> self.engine.line_shift;
        let Some(reached) = self.reaches(access) else { return Outcome::default() };
        let Reached { instruction, reached_ps, came_ps, walk_ps, .. } = reached;
        let Reached { mut issue_ps, mut begin_ps, .. } = reached;
        let translation_ps = begin_ps - issue_ps;
        let (found, transfer) = self.looked_up(access, begin_ps);
        let (nearest_ps, kind, streamed) = (self.nearest_ps, access.kind, self.streamed(&access));
        let Some(pipeline) = &mut self.state.pipeline else { return Outcome::default() };
        let under_way = pipeline.under_way_ps(line, begin_ps);
        let bytes = Bytes::new(access.address, access.bytes);
        let act = Act { position: access.position, instruction, kind, bytes };
        let mut past = Past::default();
        let cost_ps = match (transfer, under_way, found.level) {
            (Some(transfer), _, _) if !transfer.is_old => {
                begin_ps = transfer.begin_ps;
                transfer.cost_ps
            }
            (None, line_ps, level) if line_ps.is_some() || level == Some(0) => {
                let forwarded = act.forwarded(pipeline);
                pipeline.renames(forwarded, bytes);
                forwarded.takes_ps(begin_ps, nearest_ps, line_ps)
            }
            (_, _, level) => {
                let miss = Miss::new(level, self.caches.len(), found.goes_back);
                begin_ps = pipeline.room_ps((miss, line), streamed.1, begin_ps);
                issue_ps = issue_ps.max(begin_ps - translation_ps);
                past = self.past_nearest(access, begin_ps, target, (transfer, level));
                let Some(pipe) = &mut self.state.pipeline else { return Outcome::default() };
                let left_ps = pipe.left_ps(streamed, begin_ps, (past.takes_ps, nearest_ps));
                self.fills(line, (begin_ps, begin_ps + left_ps), act);
                left_ps
            }
        };
        let Some(pipeline) = &mut self.state.pipeline else { return Outcome::default() };
        let times = Times { came_ps, issue_ps, done_ps: begin_ps + cost_ps };
        let goes_on_ps = pipeline.goes_on_ps(act, transfer.is_some_and(|of| !of.is_old), times);
        let waited_ps = goes_on_ps - reached_ps;
        if let Some((shadow, there)) = shadow {
            let after_ps = transfer.map_or(0, |transfer| transfer.begin_ps - reached.begin_ps);
            let went = Went { act, line, streamed, reached_ps, waited_ps, walk_ps };
            let found = (transfer, after_ps, found, past.queue_ps + past.page_ps);
            self.alternatives(access, went, found, (shadow, there));
        }
        self.figures.cost_ps.add(translation_ps + cost_ps);
        self.figures.time_ps.add(waited_ps);
        self.time_ps.add(waited_ps);
        Outcome {
            effect: self.advances(waited_ps),
            source: source(transfer, under_way.map(|_| 0).or(found.level)),
            missed: transfer.is_none() && under_way.is_none() && found.level.is_none(),
            own_cache: found.own,
            on_one_node: found.on_one_node,
            cost_ps,
            queue_ps: past.queue_ps,
            waited_ps,
            own_wait_ps: goes_on_ps.saturating_sub(issue_ps),
            resumed_ps: if goes_on_ps == came_ps { came_ps } else { issue_ps },
            done_ps: times.done_ps,
            known: (!found.leaves).then(|| self.known(&access, reached.translated)),
        }
    }

    /// Returns the place where the next access should find the line.
    fn known(&self, access: &Access, translated: TlbPlace) -> Known {
        let stores = access.kind == Kind::Store;
        let written = if stores { self.engine.place_number(access.address) } else { NOT_WRITTEN };
        Known { translated, written }
    }

    /// Returns the times of an access that the vCPU reaches; `None` without a core. Inlined: a call
    /// would store the result in memory and load it back in pieces of a different size, which
    /// defeats the host's store forwarding.
    #[inline(always)]
    pub(super) fn reaches(&mut self, access: Access) -> Option<Reached> {
        let position = access.position;
        let instruction = self.state.instruction(position);
        let time_ps = self.time_ps.get();
        let behind_ps = self.state.behind_ps(position, self.engine.ps_own);
        let reached_ps = time_ps.saturating_sub(behind_ps);
        let pipeline = self.state.pipeline.as_mut()?;
        let came_ps = pipeline.comes_ps((instruction, access.kind), reached_ps);
        let issue_ps = pipeline.issue_ps(position, came_ps);
        let (walk_ps, translated) = self.translation_ps(access, issue_ps);
        let of = self.streamed(&access);
        let begin_ps = self.state.pipeline.as_mut()?.translated_ps(of, issue_ps, walk_ps);
        Some(Reached { instruction, reached_ps, came_ps, issue_ps, walk_ps, translated, begin_ps })
    }

    /// Returns the position of an access's instruction, and the number of its line as prefetchers
    /// of the nearest cache see it, by virtual address.
    #[inline]
    pub(super) fn streamed(&self, access: &Access) -> (u32, u64) {
        (access.position, access.virtual_address >> self.engine.line_shift)
    }

    fn fills(&mut self, line: u64, times: (u64, u64), by: Act) {
        if let Some(pipeline) = &mut self.state.pipeline {
            pipeline.fill(line, times, by);
        }
    }

    /// Returns the advance of the guest's clock for a wait of the vCPU.
    #[inline]
    pub(super) fn advances(&mut self, waited_ps: u64) -> Effect {
        if self.engine.arguments.mode != Mode::Virtual {
            return Effect::None;
        }
        let clock_ns = self.state.clock_ns(waited_ps.cast_signed());
        if clock_ns > 0 { Effect::Advance(clock_ns.cast_unsigned()) } else { Effect::None }
    }

    /// Returns the cost of an access that misses the nearest cache.
    fn past_nearest(
        &mut self,
        access: Access,
        time_ps: u64,
        target: usize,
        (transfer, level): (Option<Transfer>, Option<usize>),
    ) -> Past {
        let engine = self.engine;
        if let Some(Transfer { cost_ps, .. }) = transfer {
            return Past { takes_ps: cost_ps, ..Past::default() };
        }
        if let Some(level) = level {
            return Past { takes_ps: engine.hit_ps[level], ..Past::default() };
        }
        let (cost_ps, queue_ps) =
            self.in_memory_ps(time_ps, target, access.kind, engine.moved(access.kind));
        let other_page_ps = engine.costs.other_page_ps;
        let leaves = other_page_ps > 0 && self.state.recent_pages.enters(access.address);
        let page_ps = if leaves { other_page_ps } else { 0 };
        self.figures.nodes[target].cost_ps.add(page_ps);
        Past { takes_ps: cost_ps.saturating_add(page_ps), queue_ps, page_ps }
    }

    /// Returns the cost of moving bytes from or to a node's memory, and the part of it that is
    /// waiting for bandwidth; counts a miss.
    pub(super) fn in_memory_ps(
        &self,
        begin_ps: u64,
        target: usize,
        kind: Kind,
        moved: [u64; 2],
    ) -> (u64, u64) {
        let latency_ps = self.engine.costs.memory_ps(self.home, target, kind);
        let queue_ps = self.queued(begin_ps, target, moved);
        let cost_ps = latency_ps.saturating_add(queue_ps);
        let node = &self.figures.nodes[target];
        node.misses[kind as usize].add(1);
        node.cost_ps.add(cost_ps);
        node.queue_ps.add(queue_ps);
        (cost_ps, queue_ps)
    }

    /// Returns the caches that have the line of an access that would begin at `begin_ps`, and the
    /// transfer from another vCPU that it needs. Inlined: with a call, a miss takes a quarter
    /// longer on the host.
    #[inline(always)]
    pub(super) fn looked_up(
        &mut self,
        access: Access,
        begin_ps: u64,
    ) -> (InCaches, Option<Transfer>) {
        let found = self.hit(access.address, access.kind, begin_ps);
        if self.leaves(access, begin_ps, found.own) {
            return (InCaches { leaves: true, ..InCaches::NEAREST }, None);
        }
        (found, self.transfer(access, begin_ps, found.own))
    }

    /// Returns the additional time of a line because of other traffic: waiting for bandwidth, or
    /// higher latency under load.
    pub(super) fn queued(&self, own_ps: u64, target: usize, bytes: [u64; 2]) -> u64 {
        let engine = self.engine;
        if engine.bandwidth.is_none() && engine.load.is_none() {
            return 0;
        }
        let host_ps = || u64::try_from((engine.now)().as_nanos()).unwrap_or(0).saturating_mul(1000);
        let time_ps = match engine.arguments.mode {
            Mode::Sleep => host_ps(),
            Mode::Count | Mode::Virtual => own_ps,
        };
        let line = 1_u32 << engine.line_shift;
        let way = (self.home, target);
        let bandwidth = engine.bandwidth.as_ref();
        let wait_ps = bandwidth.map_or(0, |of| of.lock().wait_ps(self.vcpu, way, time_ps, line));
        let load = engine.load.as_ref();
        let rise_ps = load.map_or(0, |load| load.lock().rise_ps(way, time_ps, bytes));
        wait_ps.saturating_add(rise_ps)
    }
}

impl Engine {
    /// Returns the place of an address's line in the directory; 0 without one.
    #[inline]
    pub(super) fn place_number(&self, address: u64) -> u32 {
        self.owners.as_ref().map_or(0, |owners| owners.place_number(address >> self.line_shift))
    }

    /// Returns the bytes read and written by an access that misses the caches, if there are any: a
    /// cache reads the line that a store misses.
    pub(super) fn moved(&self, kind: Kind) -> [u64; 2] {
        let reads = kind == Kind::Load || !self.arguments.machine.caches.is_empty();
        [reads, !reads].map(|moves| u64::from(moves) << self.line_shift)
    }
}
