//! Charges an access: the time that the memory system takes for it, and its overlap with others.

use super::hierarchy::{Fetched, Reply};
use super::{Access, Active};
use crate::arguments::Mode;
use crate::counters::Kind;
use crate::elsewhere::{Shadow, There, Went};
use crate::outcome::{Effect, Known, NOT_WRITTEN, Outcome, Source};
use crate::pipeline::combining::Piece;
use crate::pipeline::stores::Bytes;
use crate::pipeline::{Act, Asked};
use crate::tlb::TlbPlace;
use crate::vcpu::VcpuState;

impl Active<'_> {
    /// Accesses memory on a machine without overlap of misses.
    pub(super) fn modelled(&mut self, access: Access, target: usize) -> Outcome {
        let (mut outcome, cost_ps) = self.served_alone(access, target, 0);
        if cost_ps == 0 {
            return outcome;
        }
        let instruction = self.state.instruction(access.position);
        let engine = self.memory.engine;
        let (most, ps_each) = (engine.arguments.overlap, engine.ps_each);
        let exposed_ps = self.state.overlap.exposed_ps(cost_ps, instruction, most, ps_each);
        self.memory.figures.time_ps.add(exposed_ps);
        (outcome.waited_ps, outcome.own_wait_ps) = (exposed_ps, exposed_ps);
        outcome.done_ps += exposed_ps;
        outcome.effect = self.takes(exposed_ps, cost_ps);
        outcome
    }

    /// Accesses memory as if nothing else were in flight; `past` has the bytes of a store past the
    /// caches. Returns the cost with that of the translation.
    pub(super) fn served_alone(
        &mut self,
        access: Access,
        target: usize,
        past: u8,
    ) -> (Outcome, u64) {
        let (memory, now_ps) = (self.memory, self.time_ps.get());
        let tlbs = self.state.tlbs.as_ref();
        let (translation_ps, translated) = memory.translation_ps(tlbs, &access, now_ps);
        // A store past the caches waits for nothing.
        let begin_ps = if past > 0 { now_ps } else { now_ps + translation_ps };
        let reply = self.asks(&access, past, begin_ps);
        let pages = &mut self.state.recent_pages;
        let fetched = memory.fetches(pages, &access, (&reply, target), begin_ps);
        let cost_ps = reply.transfer.map_or(0, |of| of.after_ps) + fetched.takes_ps;
        let outcome = Outcome {
            cost_ps,
            queue_ps: fetched.queue_ps,
            done_ps: begin_ps,
            ..self.outcome(&access, &reply, reply.source(false), translated)
        };
        memory.figures.cost_ps.add(translation_ps + cost_ps);
        (outcome, translation_ps + cost_ps)
    }

    /// Charges a cost, partly exposed, to the vCPU; returns the required action.
    fn takes(&mut self, exposed_ps: u64, cost_ps: u64) -> Effect {
        let mode = self.memory.engine.arguments.mode;
        let taken_ps = if mode == Mode::Sleep { cost_ps } else { exposed_ps };
        self.time_ps.add(taken_ps);
        let owed_ns = self.state.clock_ns(taken_ps.cast_signed()).cast_unsigned();
        match mode {
            Mode::Count => Effect::None,
            Mode::Virtual => Effect::Advance(owed_ns),
            Mode::Sleep => self.state.debt.owe(owed_ns).map_or(Effect::None, Effect::Sleep),
        }
    }

    /// Accesses memory in a core, overlapping with other accesses of the vCPU.
    pub(super) fn piped(
        &mut self,
        access: Access,
        target: usize,
        shadow: Option<(&mut Shadow, &[There])>,
    ) -> Outcome {
        let (memory, (asked, reached_ps)) = (self.memory, self.asked(&access));
        let VcpuState { pipeline: Some(pipeline), tlbs, .. } = &mut *self.state else {
            return Outcome::default();
        };
        let past = asked.act.by.map_or(0, |by| by.past_caches(access.kind));
        let (mut walk_ps, mut translated) = (0, TlbPlace::default());
        let reached = pipeline.reaches(&asked, reached_ps, |issue_ps| {
            (walk_ps, translated) = memory.translation_ps(tlbs.as_ref(), &access, issue_ps);
            walk_ps
        });
        let reply = self.asks(&access, past, reached.begin_ps);
        let VcpuState { pipeline: Some(pipeline), recent_pages, .. } = &mut *self.state else {
            return Outcome::default();
        };
        let mut fetched = Fetched::default();
        let line = (reply.line(reply.level, memory.caches.len()), memory.nearest_ps);
        let served = pipeline.serves(&asked, reached, line, |begin_ps| {
            fetched = memory.fetches(recent_pages, &access, (&reply, target), begin_ps);
            fetched.takes_ps
        });
        let outcome = self.outcome(&access, &reply, reply.source(served.is_under_way), translated);
        let waited_ps = served.goes_on_ps - reached_ps;
        if let Some(shadow) = shadow {
            let went = Went { asked, reached_ps, waited_ps, walk_ps };
            let beyond_ps = fetched.queue_ps + fetched.page_ps;
            memory.alternatives(&access, went, (&reply, beyond_ps), shadow);
        }
        let translation_ps = reached.begin_ps - reached.issue_ps;
        memory.figures.cost_ps.add(translation_ps + served.cost_ps);
        memory.figures.time_ps.add(waited_ps);
        self.time_ps.add(waited_ps);
        Outcome {
            effect: self.advances(waited_ps),
            cost_ps: served.cost_ps,
            queue_ps: fetched.queue_ps,
            waited_ps,
            own_wait_ps: served.goes_on_ps.saturating_sub(served.issue_ps),
            resumed_ps: reached.resumes_ps(served.goes_on_ps, served.issue_ps),
            done_ps: served.done_ps,
            ..outcome
        }
    }

    /// Asks for the line of an access that would begin at `begin_ps`; `past` has the bytes of a store
    /// past the caches.
    #[inline(always)]
    fn asks(&mut self, access: &Access, past: u8, begin_ps: u64) -> Reply {
        if past == 0 {
            return self.memory.answers(&mut self.state, access, begin_ps);
        }
        let number = self.state.instruction(access.position);
        let piece = Piece::new(access.address, past, self.memory.engine.line_shift, number);
        let joins = self.state.pipeline.as_mut().is_some_and(|of| of.joins(piece));
        Reply { level: joins.then_some(0), past: true, ..Reply::default() }
    }

    /// Returns the outcome of an access, without its times. A store past the caches has then removed
    /// its line from them.
    #[inline(always)]
    fn outcome(
        &mut self,
        access: &Access,
        reply: &Reply,
        source: Source,
        translated: TlbPlace,
    ) -> Outcome {
        if reply.past {
            self.memory.removes(&mut self.state, access, self.time_ps.get());
        }
        let stores = access.kind == Kind::Store;
        let place = || self.memory.engine.place_number(access.address);
        let written = if stores { place() } else { NOT_WRITTEN };
        Outcome {
            source,
            missed: source == Source::Memory,
            own_cache: reply.own,
            on_one_node: reply.on_one_node,
            known: (!reply.leaves && !reply.past).then_some(Known { translated, written }),
            ..Outcome::default()
        }
    }

    /// Returns the access as a core makes it, and the time at which the core reaches its instruction.
    #[inline(always)]
    fn asked(&self, access: &Access) -> (Asked, u64) {
        let Access { address, virtual_address, kind, bytes, position, .. } = *access;
        let by = self.state.pipeline.as_ref().and_then(|of| of.accessor(position));
        let instruction = self.state.instruction(position);
        let act = Act { by, instruction, kind, bytes: Bytes::new(address, bytes) };
        let unknown_ps = || self.state.behind(position) * self.memory.engine.ps_own;
        let behind_ps = by.map_or_else(unknown_ps, |by| by.behind_ps);
        let shift = self.memory.engine.line_shift;
        let asked = Asked { act, line: address >> shift, virtual_line: virtual_address >> shift };
        (asked, self.time_ps.get().saturating_sub(behind_ps))
    }

    /// Returns the advance of the guest's clock for a wait of the vCPU.
    #[inline]
    pub(super) fn advances(&mut self, waited_ps: u64) -> Effect {
        if self.memory.engine.arguments.mode != Mode::Virtual {
            return Effect::None;
        }
        let clock_ns = self.state.clock_ns(waited_ps.cast_signed());
        if clock_ns > 0 { Effect::Advance(clock_ns.cast_unsigned()) } else { Effect::None }
    }
}
