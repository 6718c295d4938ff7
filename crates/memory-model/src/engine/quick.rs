//! The fast path of most accesses and blocks: the line and the translation are still in the nearest
//! cache and TLB, and no other vCPU is involved. It has the same effect as [`super::charge`], with
//! fewer checks.

use super::{Access, Active, Engine};
use crate::cache::Cache;
use crate::counters::Kind;
use crate::outcome::{Known, NOT_WRITTEN, Outcome};
use crate::owners::{Owners, Who};
use crate::pipeline::flow::{Accessor, Flow};
use crate::pipeline::stores::Bytes;
use crate::pipeline::{Act, Asked, Line, Reached};

/// An instruction that accesses memory, as translated with its block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct By {
    /// The sources of its address, if known.
    pub accessor: Option<&'static Accessor>,
    /// Number of instructions in its block that follow it.
    pub behind: u32,
}

/// An access that the nearest cache served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hit {
    /// Time at which its instruction was reached.
    pub reached_ps: u64,
    /// Time that the vCPU waited for earlier accesses.
    pub waited_ps: u64,
    /// Time at which it then continued.
    pub resumed_ps: u64,
    /// Time at which the access is complete.
    pub done_ps: u64,
}

impl Active<'_> {
    /// Begins a block like [`Self::begin`] if it waits for nothing in earlier blocks, for a thread
    /// that is not currently simulated under other placements; returns whether it did.
    #[inline]
    pub fn begin_quickly(&mut self, instructions: u64, flow: Option<&'static Flow>) -> bool {
        let (mut at_ps, state) = (self.time_ps.get(), &mut *self.state);
        if let Some(pipeline) = &mut state.pipeline {
            let begin_ps = pipeline.begins_at_once(flow, at_ps, state.instructions + 1);
            let Some(begin_ps) = begin_ps else { return false };
            at_ps = begin_ps;
        }
        self.begins_at(instructions, flow, at_ps);
        true
    }

    /// Returns true if the thread waits for another one by loading the same address repeatedly.
    pub fn spins(&mut self) -> bool {
        self.state.spins()
    }

    /// Returns true if accesses to known lines may take the fast path at all.
    pub fn has_quick_way(&self) -> bool {
        let is_free = |ps: Option<&u64>| ps.is_none_or(|ps| *ps == 0);
        self.memory.nearest.is_some()
            && is_free(self.memory.engine.tlb_hit_ps.first())
            && (self.state.pipeline.is_some() || self.memory.nearest_ps == 0)
    }

    /// Returns true if owners of lines are tracked, so that other vCPUs' effects on a line are
    /// seen.
    pub fn knows_owners(&self) -> bool {
        self.memory.engine.owners.is_some()
    }

    /// Looks up an address in the nearest cache, and makes its line the most recent one of its set.
    #[inline]
    pub fn finds(&self, address: u64) -> bool {
        let finds = |cache: &Cache| cache.is_latest(address) || cache.access_held(address);
        self.memory.nearest.is_some_and(finds)
    }

    /// Looks up the translation of a known line in the nearest TLB.
    #[inline]
    pub fn translates(&self, known: &Known) -> bool {
        let tlbs = self.state.tlbs.as_ref();
        tlbs.is_none_or(|tlbs| tlbs.has(&known.translated))
    }

    /// Accesses an address of a known line if the fast path applies: line and translation were
    /// found or used last. The caller counts it by node ([`Engine::count`]).
    #[inline]
    pub fn again(
        &mut self,
        known: &Known,
        (address, bytes): (u64, u8),
        kind: Kind,
        by: &By,
    ) -> Option<Hit> {
        let bytes = Bytes::new(address, bytes);
        let instruction = self.state.instructions - u64::from(by.behind);
        self.served(known, Act { by: by.accessor, instruction, kind, bytes })
    }

    /// Makes an access, for a vCPU with a core, if the nearest cache and TLB serve it and it has no
    /// other effect.
    #[inline]
    pub(super) fn quickly(&mut self, access: Access, target: usize) -> Option<Outcome> {
        let (engine, Access { address, kind, position, .. }) = (self.memory.engine, access);
        let by = self.state.pipeline.as_ref()?.accessor(position);
        let instruction = self.state.instructions - self.state.behind(position);
        // The general path also makes the line and the translation the most recent ones, so nothing
        // needs to be undone.
        if !self.hits_tlb(access) || !self.finds(address) {
            return None;
        }
        let has_stored = kind == Kind::Store
            && self.memory.nearest.is_some_and(|cache| cache.has_stored(address));
        let written = if has_stored { engine.place_number(address) } else { NOT_WRITTEN };
        let known = Known { written, ..Known::default() };
        let bytes = Bytes::new(address, access.bytes);
        let hit = self.served(&known, Act { by, instruction, kind, bytes })?;
        self.memory.figures.nodes[target].accesses[kind as usize].add(engine.sampler.weight());
        self.memory.figures.cost_ps.add(self.memory.nearest_ps);
        Some(Outcome {
            effect: self.advances(hit.waited_ps),
            own_cache: true,
            cost_ps: self.memory.nearest_ps,
            waited_ps: hit.waited_ps,
            resumed_ps: hit.resumed_ps,
            done_ps: hit.done_ps,
            ..Outcome::default()
        })
    }

    /// Returns true if the translation costs nothing: the nearest TLB has it, or there is none.
    #[inline]
    fn hits_tlb(&self, access: Access) -> bool {
        self.state.tlbs.as_ref().is_none_or(|tlbs| {
            self.memory.engine.tlb_hit_ps.first() == Some(&0)
                && tlbs.hits(access.virtual_address, access.address)
        })
    }

    /// Makes an access to a line that is in the nearest cache or in flight to it.
    #[inline(always)]
    fn served(&mut self, known: &Known, act: Act) -> Option<Hit> {
        let (memory, state, time_ps) = (self.memory, &mut *self.state, self.time_ps.get());
        let line = act.bytes.address() >> memory.engine.line_shift;
        // Its translation takes no time, so nothing asks for the virtual line.
        let asked = Asked { act, line, virtual_line: line };
        let reached = match &mut state.pipeline {
            Some(pipeline) => {
                let by = act.by.filter(|by| by.is_quick())?;
                pipeline.reaches(&asked, time_ps.saturating_sub(by.behind_ps), |_| 0)
            }
            None => Reached::at(time_ps),
        };
        let by = (memory.who(), reached.issue_ps);
        if act.kind == Kind::Store && !memory.engine.stores_again(known, line, by) {
            return None;
        }
        let (mut goes_on_ps, mut takes_ps) = (time_ps, memory.nearest_ps);
        if let Some(pipeline) = &mut state.pipeline {
            let line = (Line::Nearest, memory.nearest_ps);
            let served = pipeline.serves(&asked, reached, line, |_| 0);
            (goes_on_ps, takes_ps) = (served.goes_on_ps, served.cost_ps);
            if served.is_under_way {
                // Callers count a hit.
                memory.figures.cost_ps.add(takes_ps.saturating_sub(memory.nearest_ps));
            }
        }
        state.look(act.bytes.address(), act.kind);
        let waited_ps = goes_on_ps - reached.reached_ps;
        if waited_ps > 0 {
            memory.figures.time_ps.add(waited_ps);
            self.time_ps.set(time_ps + waited_ps);
        }
        Some(Hit {
            reached_ps: reached.reached_ps,
            waited_ps,
            resumed_ps: reached.resumes_ps(goes_on_ps, reached.issue_ps),
            done_ps: reached.issue_ps + takes_ps,
        })
    }
}

impl Engine {
    /// Records another store of a vCPU to a line; returns true if it is modified in the nearest cache,
    /// and no other vCPU has it.
    #[inline(always)]
    pub(super) fn stores_again(&self, known: &Known, line: u64, (by, time_ps): (Who, u64)) -> bool {
        let owns = |owners: &Owners| owners.store_at(known.written, line, by, time_ps);
        known.written != NOT_WRITTEN && self.owners.as_ref().is_none_or(owns)
    }

    /// Counts repeated loads and stores of a vCPU to memory of a node.
    pub fn count(&self, vcpu: usize, target: usize, accesses: [u64; 2]) {
        let figures = self.counters.of(self.gate.phase(), vcpu);
        let node = &figures.nodes[target];
        node.accesses.iter().zip(accesses).for_each(|(count, more)| count.add(more));
        let cost_ps = self.hit_ps.first().map_or(0, |ps| ps * (accesses[0] + accesses[1]));
        figures.cost_ps.add(cost_ps);
    }
}
