//! Stores past the caches: lines that are written without being read, and that no cache keeps.

use super::{Access, Effect, Engine};
use crate::arguments::Mode;
use crate::counters::Kind;
use crate::elsewhere::{Cores, There, Went, Written};
use crate::outcome::Source;
use crate::pipeline::Pipeline;
use crate::pipeline::combining::Piece;
use crate::regrouped::Regrouped;
use crate::vcpu::Vcpu;

impl Engine {
    /// An access beside others of its vCPU, through the caches or past them.
    #[inline]
    pub(super) fn through_core(
        &self,
        access: Access,
        pipeline: &mut Pipeline,
        memory: (usize, u64),
        elsewhere: &[There],
    ) -> Effect {
        let bytes = pipeline.non_temporal_bytes(access.position);
        if bytes > 0 && access.kind == Kind::Store {
            return self.past_caches(access, bytes, pipeline, memory, elsewhere);
        }
        self.piped(access, pipeline, memory, elsewhere)
    }

    /// A store of so many bytes past the caches: nobody waits for it, but for a fill buffer.
    fn past_caches(
        &self,
        access: Access,
        bytes: u8,
        pipeline: &mut Pipeline,
        (target, latency_ps): (usize, u64),
        elsewhere: &[There],
    ) -> Effect {
        let (state, position) = (&self.vcpus[access.vcpu], access.position);
        let figures = self.figures(access.vcpu);
        let node = &figures.nodes[target];
        let instruction = state.instruction(position);
        let reached_ps = state.reached_ps(position, self.ps_own);
        let mut issue_ps = pipeline.issue_ps(position, reached_ps);
        let walk_ps = self.translation_ps(access, issue_ps);
        let mut begin_ps = match walk_ps {
            0 => issue_ps,
            takes_ps => pipeline.walked_ps(issue_ps, takes_ps),
        };
        figures.cost_ps.add(begin_ps - issue_ps);
        let piece = Piece::new(access.address, bytes, self.line_shift, instruction);
        let mut written = None;
        if !pipeline.joins(piece) {
            self.leave_caches(access, state);
            issue_ps = pipeline.room_ps(issue_ps, instruction);
            begin_ps = begin_ps.max(issue_ps);
            let moved = [0, 1 << self.line_shift];
            let queue_ps = self.queued(access, begin_ps, target, moved);
            let cost_ps = latency_ps.saturating_add(queue_ps);
            pipeline.write(begin_ps + cost_ps);
            node.misses[Kind::Store as usize].add(1);
            node.cost_ps.add(cost_ps);
            node.queue_ps.add(queue_ps);
            figures.cost_ps.add(cost_ps);
            written = Some(queue_ps);
        }
        if issue_ps > reached_ps {
            state.last.resumes(issue_ps);
        }
        let source = written.map_or(Source::Cache, |_| Source::Memory);
        state.last.ends(source, 0, issue_ps);
        let waited_ps = issue_ps - reached_ps;
        let (kind, line) = (access.kind, piece.line);
        let went = Went { kind, position, instruction, line, reached_ps, waited_ps, walk_ps };
        self.written_beside(access, went, written, elsewhere);
        figures.time_ps.add(waited_ps);
        state.time_ps.add(waited_ps);
        let clock_ns = state.clock_ns(waited_ps.cast_signed());
        if self.arguments.mode == Mode::Virtual && clock_ns > 0 {
            return Effect::Advance(clock_ns.cast_unsigned());
        }
        Effect::None
    }

    /// No cache that knows of the store keeps its line: what one had of it goes to memory first.
    fn leave_caches(&self, access: Access, state: &Vcpu) {
        let address = access.address;
        state.last.found(false, [false; 2]);
        state.caches.iter().for_each(|cache| cache.lose(address));
        let group = self.shared[self.groups[access.vcpu]].lock();
        group.iter().for_each(|cache| cache.lose(address));
        drop(group);
        let packed = self.packed.as_ref().and_then(|(_, shared)| shared.as_ref());
        let regrouped = self.one_node.iter().chain(packed);
        regrouped.for_each(|shared: &Regrouped| shared.lose(access.vcpu, address));
        let Some(owners) = &self.owners else { return };
        state.look(address, access.kind);
        if owners.forget(address >> self.line_shift, access.vcpu) {
            let others = (0..self.vcpus.len()).filter(|&other| other != access.vcpu);
            others.for_each(|other| self.take_away(access, other));
        }
    }

    /// The same store with its page elsewhere: what was waited for bandwidth, if it began a line.
    fn written_beside(
        &self,
        access: Access,
        went: Went,
        queue_ps: Option<u64>,
        elsewhere: &[There],
    ) {
        if elsewhere.is_empty() {
            return;
        }
        let home = self.arguments.machine.cpus[access.vcpu];
        let mut cores = self.vcpus[access.vcpu].elsewhere.lock();
        for (core, there) in cores.iter_mut().zip(elsewhere) {
            let initiator = match core.cores() {
                Cores::On(node) => node,
                Cores::Packed => self.packed_node(access.vcpu).unwrap_or(home),
                Cores::Stay => home,
            };
            let memory_ps = self.costs.memory_ps(initiator, there.node, Kind::Store);
            let written = queue_ps.map_or(Written::Joined, |queue_ps| Written::Line {
                takes_ps: memory_ps.saturating_add(queue_ps),
            });
            let walk_ps = core.translate(access.virtual_address, access.address, *there);
            let walk_ps = walk_ps.map_or(went.walk_ps, |of| self.translated_ps(access.vcpu, of));
            core.write(Went { walk_ps, ..went }, written);
        }
    }
}
