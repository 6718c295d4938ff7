//! Misses that overlap: what of a core's accesses is under way, and what has to wait for it.
//!
//! An interval model, as those of D. Eyerman et al., "A Mechanistic Performance Model for
//! Superscalar Out-of-Order Processors" (ACM TOCS 27, 2009): instructions take their own time
//! and go on while their loads are under way, until one of three things stops them:
//! - an address that comes from a load waits for that load;
//! - a miss waits for one of the core's fill buffers;
//! - nothing runs more instructions ahead of a load than the reorder buffer holds.
//!
//! Values are followed through registers, as the block's instructions say ([`flow`]), and through
//! memory from recent stores to loads of the same bytes ([`stores`]). Nothing comes up behind a
//! branch that was mispredicted until what decides it is known, and the core has begun anew there. Stores past the caches wait for nothing but a fill
//! buffer ([`combining`]). Lines of sequential streams can be asked for ahead (`streams`).

pub mod aarch64;
mod act;
pub mod combining;
pub mod flow;
pub mod stores;
mod streams;
pub mod x86;

pub use act::Act;
use alloc::vec;
use alloc::vec::Vec;
use combining::{Combining, Piece};
use flow::{Accessor, Flow, LOADS, Late, REGISTERS, Sources};
use stores::Stores;
use streams::Streams;

use crate::cost::ps;
use crate::counters::Kind;
use crate::machine::Core;

/// A line on its way to a core.
#[derive(Clone, Copy, Debug)]
struct Fill {
    line: u64,
    /// When it is there.
    done_ps: u64,
    /// Number of the instruction that asked for it.
    instruction: u64,
}

/// What a core has under way.
#[derive(Debug)]
pub struct Pipeline {
    core: Core,
    flow: Option<&'static Flow>,
    /// When each register has its value, as far as that may be yet to come.
    registers: Late<REGISTERS>,
    /// When each load of the block ends, as far as that may be yet to come.
    loads: Late<LOADS>,
    /// Registers that a block has changed, until all of them are known.
    results: Late<REGISTERS>,
    /// When all that is under way ends, and all lines that are.
    latest_ps: u64,
    latest_fill_ps: u64,
    /// The first instruction that may have to wait for a line on its way.
    stops_at: u64,
    fills: Vec<Fill>,
    /// Stores past the caches, which take fill buffers as well.
    combining: Combining,
    /// Stores that loads get their data from.
    stores: Stores,
    /// Where lines are fetched ahead.
    streams: Option<Streams>,
    /// When each walker of page tables is free.
    walkers: Vec<u64>,
    /// What an atomic read-modify-write takes longer than a load.
    atomic_ps: Option<u64>,
    /// What it takes to begin anew where a mispredicted branch goes.
    branch_ps: u64,
    /// Whether the branch at the block's end was mispredicted.
    mispredicted: bool,
    /// Position of one whose load was the last access that had to be waited for.
    atomic_load: Option<u32>,
}

impl Pipeline {
    /// Nothing under way.
    pub fn new(core: Core, walkers: u32) -> Self {
        Self {
            core,
            flow: None,
            registers: Late::default(),
            loads: Late::default(),
            results: Late::default(),
            latest_ps: 0,
            latest_fill_ps: 0,
            stops_at: u64::MAX,
            fills: Vec::new(),
            combining: Combining::new(core.misses),
            stores: Stores::new(core.instructions),
            streams: core.prefetch.map(Streams::new),
            walkers: vec![0; walkers as usize],
            atomic_ps: core.atomic_ns.map(ps),
            branch_ps: ps(core.branch_ns()),
            mispredicted: false,
            atomic_load: None,
        }
    }

    /// A block begins, of which nothing is known without its flow; when it can, if it has come
    /// to this instruction at `now_ps`.
    pub fn begin(&mut self, flow: Option<&'static Flow>, now_ps: u64, instruction: u64) -> u64 {
        if self.begins_at_once(flow, now_ps, instruction) {
            return now_ps;
        }
        let now_ps = self.restarts_ps(now_ps);
        let drains = flow.is_some_and(|flow| flow.drains || flow.fence);
        if drains {
            self.combining.close();
        }
        if self.latest_ps <= now_ps {
            self.begins_afresh(flow);
            return now_ps;
        }
        self.turns_to(flow);
        if flow.is_none_or(|flow| flow.fence) {
            return self.latest_ps;
        }
        let now_ps = if drains { now_ps.max(self.combining.written_ps()) } else { now_ps };
        self.looked_ahead(now_ps, instruction)
    }

    /// The same if it waits for nothing that is under way; whether that is so.
    #[inline]
    pub fn begins_at_once(
        &mut self,
        flow: Option<&'static Flow>,
        now_ps: u64,
        instruction: u64,
    ) -> bool {
        if self.mispredicted || flow.is_none_or(|flow| flow.fence || flow.drains) {
            return false;
        }
        if self.latest_ps <= now_ps {
            self.begins_afresh(flow);
            return true;
        }
        if instruction >= self.stops_at {
            return false;
        }
        self.turns_to(flow);
        true
    }

    /// The branch at the block's end turns out to have been mispredicted.
    pub fn mispredicts(&mut self) {
        self.mispredicted = true;
    }

    /// Whether it has, and the next block has not begun.
    pub fn is_mispredicted(&self) -> bool {
        self.mispredicted
    }

    /// When a core that has come to the block's end goes on where its branch goes.
    fn restarts_ps(&mut self, now_ps: u64) -> u64 {
        if !core::mem::take(&mut self.mispredicted) {
            return now_ps;
        }
        let decided_ps = self.flow.map_or(0, |flow| self.known_ps(flow.decided_by));
        now_ps.max(decided_ps) + self.branch_ps
    }

    /// A block begins with nothing under way.
    #[inline]
    fn begins_afresh(&mut self, flow: Option<&'static Flow>) {
        self.flow = flow;
        self.registers.clear();
        self.loads.clear();
    }

    /// Registers are as the block left them, and another one begins.
    #[inline]
    fn turns_to(&mut self, flow: Option<&'static Flow>) {
        if let Some(before) = core::mem::replace(&mut self.flow, flow) {
            let sources = before.sources;
            if self.registers.any(sources.registers) || self.loads.any(sources.loads) {
                self.finish(before);
            } else {
                self.registers.forget(before.changed);
            }
            self.loads.clear();
        }
    }

    /// When an access can begin by an instruction that has come up at `now_ps`.
    #[inline]
    pub fn issues_ps(&self, accessor: &Accessor, now_ps: u64) -> u64 {
        if self.latest_ps <= now_ps { now_ps } else { now_ps.max(self.known_ps(accessor.address)) }
    }

    /// When an access can begin whose instruction is at this position of the block and has come
    /// up at `now_ps`.
    #[inline]
    pub fn issue_ps(&self, position: u32, now_ps: u64) -> u64 {
        match self.accessor(position) {
            Some(accessor) => self.issues_ps(accessor, now_ps),
            None => self.latest_ps.max(now_ps),
        }
    }

    /// Whether no line is on its way at this time.
    #[inline]
    pub fn is_idle(&self, now_ps: u64) -> bool {
        self.latest_fill_ps <= now_ps
    }

    /// When a line is there that is on its way already.
    #[inline]
    pub fn under_way_ps(&self, line: u64, now_ps: u64) -> Option<u64> {
        if self.is_idle(now_ps) {
            return None;
        }
        let mut fills = self.fills.iter().filter(|fill| fill.line == line && fill.done_ps > now_ps);
        fills.next().map(|fill| fill.done_ps)
    }

    /// When a miss that could begin at `now_ps` finds a fill buffer, and the instructions before
    /// it a place in the reorder buffer.
    pub fn room_ps(&mut self, now_ps: u64, instruction: u64) -> u64 {
        self.room_of(self.core.misses, now_ps, instruction)
    }

    /// The same for a store past the caches.
    pub fn write_room_ps(&mut self, now_ps: u64, instruction: u64) -> u64 {
        let Core { misses, prefetch, writes, .. } = self.core;
        self.room_of(writes.unwrap_or(misses + prefetch.unwrap_or(0)), now_ps, instruction)
    }

    fn room_of(&mut self, most: u32, now_ps: u64, instruction: u64) -> u64 {
        let now_ps = self.looked_ahead(now_ps, instruction);
        self.fills.retain(|fill| fill.done_ps > now_ps);
        let taken = self.fills.len() + self.combining.under_way(now_ps);
        if taken < most as usize {
            return now_ps;
        }
        let first = self.fills.iter().enumerate().min_by_key(|(_, fill)| fill.done_ps);
        let (first, done_ps) = first.map_or((0, u64::MAX), |(at, fill)| (at, fill.done_ps));
        let written_ps = self.combining.first_before(done_ps);
        written_ps.unwrap_or_else(|| self.fills.swap_remove(first).done_ps)
    }

    /// What of `takes_ps` is left of a miss that begins at `now_ps`: its line may have been asked for
    /// before, as that of a stream. Never less than a hit of the nearest cache.
    #[inline]
    pub fn left_ps(&mut self, line: u64, now_ps: u64, takes_ps: u64, nearest_ps: u64) -> u64 {
        let Some(streams) = &mut self.streams else { return takes_ps };
        let ahead_ps = now_ps - streams.asked_ps(line, now_ps);
        takes_ps.saturating_sub(ahead_ps).max(nearest_ps)
    }

    /// When a walk of page tables ends that could begin at `now_ps` and takes this long; at once if it
    /// takes nothing, as there is none then.
    #[inline]
    pub fn walked_ps(&mut self, now_ps: u64, takes_ps: u64) -> u64 {
        if takes_ps == 0 {
            return now_ps;
        }
        let Some(first) = self.walkers.iter_mut().min() else { return now_ps + takes_ps };
        *first = now_ps.max(*first) + takes_ps;
        *first
    }

    /// A line is on its way.
    pub fn fill(&mut self, line: u64, done_ps: u64, instruction: u64) {
        self.combining.give_up(line);
        self.fills.push(Fill { line, done_ps, instruction });
        self.latest_ps = self.latest_ps.max(done_ps);
        self.latest_fill_ps = self.latest_fill_ps.max(done_ps);
        self.stops_at = self.stops_at.min(instruction + u64::from(self.core.instructions));
    }

    /// Puts a piece of a line together with others that are stored past the caches; whether the
    /// line is on its way already.
    pub fn joins(&mut self, piece: Piece) -> bool {
        self.combining.joins(piece)
    }

    /// A line is on its way to memory, past the caches.
    pub fn write(&mut self, done_ps: u64) {
        self.combining.write(done_ps);
        self.latest_ps = self.latest_ps.max(done_ps);
    }

    /// Bytes that the instruction at this position stores past the caches at a time; 0 where it
    /// does not.
    #[inline]
    pub fn non_temporal_bytes(&self, position: u32) -> u8 {
        self.accessor(position).map_or(0, |accessor| accessor.non_temporal_bytes)
    }

    /// A load ends then, which began at `now_ps`.
    #[inline]
    fn loaded(&mut self, position: u32, now_ps: u64, done_ps: u64) {
        self.latest_ps = self.latest_ps.max(done_ps);
        if let Some(accessor) = self.accessor(position) {
            self.loads(accessor, now_ps, done_ps);
        }
    }

    /// The same for the load of an instruction.
    #[inline]
    pub fn loads(&mut self, accessor: &Accessor, now_ps: u64, done_ps: u64) {
        if done_ps > now_ps {
            self.latest_ps = self.latest_ps.max(done_ps);
            let load = usize::from(accessor.load);
            self.loads.set(load, done_ps.max(self.loads.get(load)));
        }
    }

    /// When what comes behind an access goes on, which could begin and ended at these times; `taken`
    /// says whether another core had its line, of which what it wrote usually decides what comes next.
    #[inline(always)]
    pub fn goes_on_ps(&mut self, act: Act, taken: bool, (issue_ps, done_ps): (u64, u64)) -> u64 {
        let Act { position, kind, .. } = act;
        match kind {
            Kind::Load => self.loaded(position, issue_ps, done_ps),
            Kind::Store => self.stored(act, issue_ps),
        }
        match (self.accessor(position), self.atomic_ps) {
            (Some(Accessor { atomic: true, .. }), Some(atomic_ps)) => {
                // QEMU says both accesses, or a store alone: the first one takes the time of both.
                let goes_with_load = kind == Kind::Store && self.atomic_load == Some(position);
                self.atomic_load = (kind == Kind::Load).then_some(position);
                match (goes_with_load, taken) {
                    (false, _) => done_ps + atomic_ps,
                    (true, false) => issue_ps,
                    (true, true) => done_ps,
                }
            }
            (accessor, _) if taken || accessor.is_none_or(|of| of.atomic) => done_ps,
            _ => issue_ps,
        }
    }

    /// The instruction at this position, where it is known.
    #[inline]
    pub(crate) fn accessor(&self, position: u32) -> Option<&'static Accessor> {
        self.flow?.accessors.get(position as usize)
    }

    /// Nothing is under way any more; when that is.
    pub fn drain(&mut self) -> u64 {
        self.combining.close();
        self.begins_afresh(None);
        self.latest_ps
    }

    /// When a value is known that comes from there.
    #[inline]
    fn known_ps(&self, sources: Sources) -> u64 {
        let registers = self.registers.latest(sources.registers);
        registers.max(self.loads.latest(sources.loads))
    }

    /// The registers are as the block left them.
    fn finish(&mut self, flow: &'static Flow) {
        self.results.clear();
        for (register, sources) in &flow.results {
            let known_ps = self.known_ps(*sources);
            if known_ps > 0 {
                self.results.set(usize::from(*register), known_ps);
            }
        }
        self.registers.replace(flow.changed, &self.results);
    }

    /// When the oldest access under way lets this instruction into the reorder buffer.
    fn looked_ahead(&mut self, now_ps: u64, instruction: u64) -> u64 {
        if instruction < self.stops_at || self.is_idle(now_ps) {
            return now_ps;
        }
        let stops_at = |fill: &Fill| fill.instruction + u64::from(self.core.instructions);
        let stop = self.fills.iter().filter(|fill| stops_at(fill) <= instruction);
        let then_ps = stop.map(|fill| fill.done_ps).max().map_or(now_ps, |ps| ps.max(now_ps));
        let left = self.fills.iter().filter(|fill| fill.done_ps > then_ps);
        self.stops_at = left.map(stops_at).min().unwrap_or(u64::MAX);
        then_ps
    }
}

#[cfg(test)]
mod tests;
