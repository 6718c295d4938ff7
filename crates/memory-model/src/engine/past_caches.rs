//! Stores past the caches: lines that are written without being read, and kept in no cache.

use super::charge::Reached;
use super::{Access, Active};
use crate::cache::Cache;
use crate::counters::Kind;
use crate::elsewhere::{Shadow, There, Went, Written};
use crate::outcome::{Outcome, Source};
use crate::pipeline::Act;
use crate::pipeline::combining::Piece;
use crate::pipeline::stores::Bytes;

impl Active<'_> {
    /// Stores this number of bytes past the caches; the vCPU waits only for a fill buffer.
    pub(super) fn past_caches(
        &mut self,
        access: Access,
        bytes: u8,
        target: usize,
        shadow: Option<(&mut Shadow, &[There])>,
    ) -> Outcome {
        let (engine, position) = (self.engine, access.position);
        let Some(reached) = self.reaches(access) else { return Outcome::default() };
        let Reached { instruction, reached_ps, mut issue_ps, walk_ps, mut begin_ps, .. } = reached;
        let translation_ps = begin_ps - issue_ps;
        let piece = Piece::new(access.address, bytes, engine.line_shift, instruction);
        let Some(pipeline) = &mut self.state.pipeline else { return Outcome::default() };
        let (mut cost_ps, mut queue_ps) = (0, 0);
        let begins_line = !pipeline.joins(piece);
        if begins_line {
            issue_ps = pipeline.write_room_ps(issue_ps);
            begin_ps = begin_ps.max(issue_ps);
            (cost_ps, queue_ps) = self.written_ps(begin_ps, target);
        }
        self.leaves_caches(access);
        let waited_ps = issue_ps - reached_ps;
        if let Some((shadow, there)) = shadow {
            let (kind, line) = (access.kind, piece.line);
            let bytes = Bytes::new(access.address, access.bytes);
            let act = Act { position, instruction, kind, bytes };
            let streamed = self.streamed(&access);
            let went = Went { act, line, streamed, reached_ps, waited_ps, walk_ps };
            let queue_ps = begins_line.then_some(queue_ps);
            self.written_alternatives(access, went, queue_ps, (shadow, there));
        }
        self.figures.cost_ps.add(translation_ps + cost_ps);
        self.figures.time_ps.add(waited_ps);
        self.time_ps.add(waited_ps);
        Outcome {
            effect: self.advances(waited_ps),
            source: if begins_line { Source::Memory } else { Source::Cache },
            missed: begins_line,
            cost_ps,
            queue_ps,
            waited_ps,
            resumed_ps: issue_ps,
            done_ps: issue_ps,
            ..Outcome::default()
        }
    }

    /// Sends a line to a node's memory; returns its cost, and the part of it that is waiting for
    /// bandwidth.
    fn written_ps(&mut self, begin_ps: u64, target: usize) -> (u64, u64) {
        let moved = [0, 1 << self.engine.line_shift];
        let (cost_ps, queue_ps) = self.in_memory_ps(begin_ps, target, Kind::Store, moved);
        if let Some(pipeline) = &mut self.state.pipeline {
            pipeline.write(begin_ps + cost_ps);
        }
        (cost_ps, queue_ps)
    }

    /// Removes the line from all caches that see the store; modified data goes to memory first.
    pub(super) fn leaves_caches(&mut self, access: Access) {
        let (engine, address) = (self.engine, access.address);
        let mut modified = Cache::lose_all(self.caches, address);
        let group = engine.groups[self.vcpu];
        if let Some(thread) = self.thread {
            let packed = engine.packed.as_ref().and_then(|(_, shared)| shared.as_ref());
            let regrouped = engine.one_node.iter().chain(packed);
            regrouped
                .filter(|shared| !shared.is_alike(thread, group, &engine.shared))
                .for_each(|shared| shared.lose(thread, address));
        }
        modified |= Cache::lose_all(engine.shared[group].lock().iter(), address);
        if let Some(owners) = &engine.owners {
            self.state.look(address, access.kind);
            if owners.forget(address >> engine.line_shift, self.vcpu) {
                let others = (0..engine.vcpus.len()).filter(|&other| other != self.vcpu);
                others.for_each(|other| modified |= engine.take_away(address, self.vcpu, other));
            }
        }
        if modified {
            self.written_back(address, self.time_ps.get());
        }
    }

    /// Repeats the store for each of the cores that have its page elsewhere.
    fn written_alternatives(
        &self,
        access: Access,
        went: Went,
        queue_ps: Option<u64>,
        (shadow, elsewhere): (&mut Shadow, &[There]),
    ) {
        let engine = self.engine;
        let thread = shadow.thread;
        for (core, there) in shadow.cores.iter_mut().zip(elsewhere) {
            let initiator = self.home_by(core.cores(), thread);
            let memory_ps = engine.costs.memory_ps(initiator, there.node(), Kind::Store);
            let written = queue_ps.map_or(Written::Joined, |queue_ps| Written::Line {
                takes_ps: memory_ps.saturating_add(queue_ps),
            });
            let walk_ps = core.translate(access.virtual_address, access.address, *there);
            let walk_ps = walk_ps.map_or(went.walk_ps, |of| engine.translated_ps(self.vcpu, of));
            core.write(Went { walk_ps, ..went }, written);
        }
    }
}
