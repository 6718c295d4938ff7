//! What an access takes: caches, memory, queues, and what of it goes on beside it.

use super::coherence::Transfer;
use super::{Access, Effect, Engine};
use crate::arguments::Mode;
use crate::counters::{Kind, VcpuFigures};
use crate::elsewhere::{There, Went};
use crate::outcome::Source;
use crate::pipeline::Pipeline;
use crate::vcpu::Vcpu;

/// Where a line comes from that is transferred, or that a cache has.
fn source(transfer: Option<Transfer>, found: Option<usize>) -> Source {
    match (transfer, found) {
        (Some(Transfer { far: true, .. }), _) => Source::Far,
        (Some(_), _) => Source::Near,
        (None, Some(_)) => Source::Cache,
        (None, None) => Source::Memory,
    }
}

impl Engine {
    /// An access through caches and queues.
    pub(super) fn modelled(
        &self,
        access: Access,
        figures: &VcpuFigures,
        target: usize,
        latency_ps: u64,
    ) -> Effect {
        let node = &figures.nodes[target];
        let state = &self.vcpus[access.vcpu];
        let translation_ps = self.translation_ps(access, state.time_ps.get());
        let time_ps = state.time_ps.get() + translation_ps;
        let found = self.hit(state, access);
        let own = found.is_some_and(|level| level < state.caches.len());
        let transfer = self.transfer(access, time_ps, own);
        let (cost_ps, queue_ps) = match transfer {
            Some(transfer) => (transfer.begin_ps - time_ps + transfer.cost_ps, 0),
            None => self.past_nearest(access, time_ps, target, found, latency_ps),
        };
        node.cost_ps.add(cost_ps);
        node.queue_ps.add(queue_ps);
        let cost_ps = translation_ps + cost_ps;
        let source = source(transfer, found);
        if cost_ps == 0 {
            state.last.ends(source, 0, time_ps);
            return Effect::None;
        }
        figures.cost_ps.add(cost_ps);
        let instruction = state.instruction(access.position);
        let (most, ps_each) = (self.arguments.overlap, self.ps_each);
        let exposed_ps = state.overlap.exposed_ps(cost_ps, instruction, most, ps_each);
        figures.time_ps.add(exposed_ps);
        state.last.ends(source, exposed_ps, time_ps + exposed_ps);
        match self.arguments.mode {
            Mode::Count => {
                state.time_ps.add(exposed_ps);
                Effect::None
            }
            Mode::Virtual => Effect::Advance(state.take_ns(exposed_ps)),
            Mode::Sleep => {
                let owed_ns = state.take_ns(cost_ps);
                state.debt.lock().owe(owed_ns).map_or(Effect::None, Effect::Sleep)
            }
        }
    }

    /// An access through caches and queues, beside others of its vCPU.
    pub(super) fn piped(
        &self,
        access: Access,
        pipeline: &mut Pipeline,
        (target, latency_ps): (usize, u64),
        elsewhere: &[There],
    ) -> Effect {
        let (state, position) = (&self.vcpus[access.vcpu], access.position);
        let figures = self.figures(access.vcpu);
        let node = &figures.nodes[target];
        let (line, instruction) = (access.address >> self.line_shift, state.instruction(position));
        let reached_ps = state.reached_ps(position, self.ps_own);
        let mut issue_ps = pipeline.issue_ps(position, reached_ps);
        let walk_ps = self.translation_ps(access, issue_ps);
        let mut begin_ps = match walk_ps {
            0 => issue_ps,
            takes_ps => pipeline.walked_ps(issue_ps, takes_ps),
        };
        let translation_ps = begin_ps - issue_ps;
        let found = self.hit(state, access);
        let nearest_ps = self.hit_ps.first().copied().unwrap_or(0);
        let own = found.is_some_and(|level| level < state.caches.len());
        let transfer = self.transfer(access, begin_ps, own);
        let after_ps = transfer.map_or(0, |transfer| transfer.begin_ps - begin_ps);
        let under_way = pipeline.under_way_ps(line, begin_ps);
        let source = source(transfer, under_way.map(|_| 0).or(found));
        let (cost_ps, queue_ps) = match (transfer, under_way, found) {
            (Some(transfer), _, _) => {
                begin_ps = transfer.begin_ps;
                (transfer.cost_ps, 0)
            }
            (None, Some(done_ps), _) => ((done_ps - begin_ps).max(nearest_ps), 0),
            (None, None, Some(0)) => (nearest_ps, 0),
            (None, None, found) => {
                issue_ps = pipeline.room_ps(issue_ps, instruction);
                begin_ps = begin_ps.max(issue_ps);
                let (cost_ps, queue_ps) =
                    self.past_nearest(access, begin_ps, target, found, latency_ps);
                pipeline.fill(line, begin_ps + cost_ps, instruction);
                (cost_ps, queue_ps)
            }
        };
        node.cost_ps.add(cost_ps);
        node.queue_ps.add(queue_ps);
        figures.cost_ps.add(translation_ps + cost_ps);
        let done_ps = begin_ps + cost_ps;
        if access.kind == Kind::Load {
            pipeline.loaded(position, done_ps);
        }
        // What another vCPU wrote usually decides what comes next.
        let waits = transfer.is_some() || pipeline.waits(position);
        let goes_on_ps = if waits { done_ps } else { issue_ps };
        if issue_ps > reached_ps {
            state.last.resumes(issue_ps);
        }
        state.last.ends(source, goes_on_ps - issue_ps, done_ps);
        let waited_ps = goes_on_ps - reached_ps;
        let kind = access.kind;
        let went = Went { kind, position, instruction, line, reached_ps, waited_ps, walk_ps };
        self.beside(access, went, (transfer, after_ps, found, queue_ps), elsewhere);
        figures.time_ps.add(waited_ps);
        state.time_ps.add(waited_ps);
        let clock_ns = state.clock_ns(waited_ps.cast_signed());
        if self.arguments.mode == Mode::Virtual && clock_ns > 0 {
            return Effect::Advance(clock_ns.cast_unsigned());
        }
        Effect::None
    }

    /// What an access takes that the nearest cache does not serve, and what of that is waiting.
    fn past_nearest(
        &self,
        access: Access,
        time_ps: u64,
        target: usize,
        found: Option<usize>,
        latency_ps: u64,
    ) -> (u64, u64) {
        if let Some(level) = found {
            return (self.hit_ps[level], 0);
        }
        self.figures(access.vcpu).nodes[target].misses[access.kind as usize].add(1);
        let queue_ps = self.queued(access, time_ps, target, self.moved(access.kind));
        (latency_ps.saturating_add(queue_ps), queue_ps)
    }

    /// The level of the caches that has the line; all those before it have it now.
    pub(super) fn hit(&self, state: &Vcpu, access: Access) -> Option<usize> {
        let own = state.caches.len();
        let found = state.caches.iter().position(|cache| cache.access(access.address));
        let packed = self.packed.as_ref().and_then(|(_, shared)| shared.as_ref());
        let elsewhere = [self.one_node.as_ref(), packed].map(|shared| {
            let shared = shared.filter(|_| found.is_none());
            shared.is_some_and(|of| of.access(access.vcpu, access.address))
        });
        state.last.found(found.is_some(), elsewhere);
        if found.is_some() || own == self.hit_ps.len() {
            return found;
        }
        let shared = self.shared[self.groups[access.vcpu]].lock();
        shared.iter().position(|cache| cache.access(access.address)).map(|at| own + at)
    }

    /// Bytes read and written for an access that misses the caches: a cache reads the line that a
    /// store misses, and writes it back in the end.
    pub(super) fn moved(&self, kind: Kind) -> [u64; 2] {
        let reads = kind == Kind::Load || !self.arguments.machine.caches.is_empty();
        [reads, kind == Kind::Store].map(|moves| u64::from(moves) << self.line_shift)
    }

    /// How much longer a line takes because of the others: it waits for bandwidth, or the way
    /// is loaded.
    pub(super) fn queued(
        &self,
        access: Access,
        own_ps: u64,
        target: usize,
        bytes: [u64; 2],
    ) -> u64 {
        if self.bandwidth.is_none() && self.load.is_none() {
            return 0;
        }
        let time_ps = match self.arguments.mode {
            Mode::Sleep => u64::try_from((self.now)().as_nanos()).unwrap_or(0).saturating_mul(1000),
            Mode::Count | Mode::Virtual => own_ps,
        };
        let line = 1_u32 << self.line_shift;
        let way = (self.arguments.machine.cpus[access.vcpu], target);
        let wait_ps = self
            .bandwidth
            .as_ref()
            .map_or(0, |bandwidth| bandwidth.lock().wait_ps(access.vcpu, way, time_ps, line));
        let load = self.load.as_ref();
        let rise_ps = load.map_or(0, |load| load.lock().rise_ps(way, time_ps, bytes));
        wait_ps.saturating_add(rise_ps)
    }
}
