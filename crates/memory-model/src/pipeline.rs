//! Misses that overlap: what of a core's accesses is under way, and what has to wait for it.
//!
//! An interval model, as those of D. Eyerman et al., "A Mechanistic Performance Model for
//! Superscalar Out-of-Order Processors" (ACM TOCS 27, 2009): instructions take their own time
//! and go on while others are under way. An access waits for its address, and a miss for one of the core's
//! fill buffers; what does not need them goes past, until one of four things stops it:
//! - nothing comes up more instructions ahead of one that has not finished than the reorder buffer
//!   (`window`) holds;
//! - nothing comes up while what waits for its operands fills a scheduler (`schedulers`);
//! - nothing comes up more than `AHEAD_PS` ahead of an access that waits for its address;
//! - an atomic read-modify-write, a fence, and a line from another core are waited for.
//!
//! Values are followed through registers, as the block's instructions say ([`flow`]), and through
//! memory from recent stores to loads of the same bytes ([`stores`]). Nothing comes up behind a branch that
//! was mispredicted until what decides it is known, and the core has begun anew there. Stores past the caches
//! wait for nothing but a fill buffer ([`combining`]). Lines of sequential streams can be asked for ahead (`streams`).

pub mod aarch64;
mod act;
pub mod combining;
mod fills;
pub mod flow;
mod late;
pub mod operands;
pub(crate) mod schedulers;
pub mod speeds;
pub mod stores;
mod streams;
pub mod value;
mod walkers;
mod window;
pub mod x86;

pub use act::{Act, Times};
use combining::{Combining, Piece};
use fills::Fills;
use flow::{Accessor, Flow};
use late::Late;
use schedulers::Schedulers;
use stores::Stores;
use streams::Streams;
use value::{LOADS, Value};
use walkers::Walkers;
pub use window::Came;
use window::Window;

use crate::cost::ps;
use crate::counters::Kind;
use crate::machine::{Core, Tlb};

/// How long before an access can begin a core goes past it, at most. What waits stands in a scheduler, all of
/// whose entries are taken at some time; as a time, a few of memory's latencies, this keeps what vCPUs
/// do in the order of their own times.
const AHEAD_PS: u64 = 1_000_000;

/// What a core has under way.
#[derive(Debug)]
pub struct Pipeline {
    core: Core,
    flow: Option<&'static Flow>,
    /// When each register has its value, as far as that may be yet to come.
    registers: Late<{ operands::REGISTERS }>,
    /// When each load of the block ends, as far as that may be yet to come.
    loads: Late<LOADS>,
    /// Registers that a block has changed, until all of them are known.
    results: Late<{ operands::REGISTERS }>,
    /// When the block began, and its last instruction's number.
    begin_ps: u64,
    last: u64,
    /// When all loads of the block end.
    loaded_ps: u64,
    /// When all that is under way ends.
    latest_ps: u64,
    /// What has not finished.
    window: Window,
    /// What waits for its operands.
    schedulers: Schedulers,
    fills: Fills,
    /// Stores past the caches, which take fill buffers as well.
    combining: Combining,
    /// Stores that loads get their data from.
    stores: Stores,
    /// Where lines are fetched ahead.
    streams: Option<Streams>,
    walkers: Walkers,
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
    pub fn new(core: Core, tlb: Option<&Tlb>) -> Self {
        Self {
            core,
            flow: None,
            registers: Late::default(),
            loads: Late::default(),
            results: Late::default(),
            begin_ps: 0,
            last: 0,
            loaded_ps: 0,
            latest_ps: 0,
            window: Window::new(core.instructions),
            schedulers: core.schedulers(),
            fills: Fills::new(core.line_ns().map(ps)),
            combining: Combining::new(core.misses),
            stores: Stores::new(core.instructions, ps(core.blocked_ns())),
            streams: core.prefetch.map(Streams::new),
            walkers: Walkers::of(tlb),
            atomic_ps: core.atomic_ns.map(ps),
            branch_ps: ps(core.branch_ns()),
            mispredicted: false,
            atomic_load: None,
        }
    }

    /// A block begins, of which nothing is known without its flow, with the instruction of a number that could
    /// come up at `now_ps`; when it does.
    pub fn begin(&mut self, flow: Option<&'static Flow>, now_ps: u64, instruction: u64) -> Came {
        if let Some(at_ps) = self.begins_at_once(flow, now_ps, instruction) {
            return Came { at_ps, for_access: false };
        }
        let resumes_ps = self.restarts_ps(now_ps);
        let drains = flow.is_some_and(|flow| flow.drains || flow.fence);
        if drains {
            self.combining.close();
        }
        self.turns_to(flow, (now_ps, instruction));
        let mut came = self.window.comes(instruction, resumes_ps);
        let room_ps = self.schedulers.room_ps(came.at_ps);
        if room_ps > came.at_ps {
            came = Came { at_ps: room_ps, for_access: !self.fills.is_idle(came.at_ps) };
        }
        if flow.is_none_or(|flow| flow.fence) {
            came = Came { at_ps: came.at_ps.max(self.latest_ps), for_access: true };
            self.window.clear();
        } else if drains {
            came.at_ps = came.at_ps.max(self.combining.written_ps());
        }
        self.begin_ps = came.at_ps;
        came
    }

    /// The same if it waits for no access that is under way, but for results at most.
    #[inline]
    pub fn begins_at_once(
        &mut self,
        flow: Option<&'static Flow>,
        now_ps: u64,
        instruction: u64,
    ) -> Option<u64> {
        let is_free = flow.is_some_and(|flow| !flow.fence && !flow.drains);
        if self.mispredicted || !is_free || self.window.keeps_for_access(instruction) {
            return None;
        }
        let further = self.flow.map_or(0, |flow| flow.instructions);
        if self.schedulers.may_fill(further) && !self.fills.is_idle(now_ps) {
            return None;
        }
        self.turns_to(flow, (now_ps, instruction));
        self.begin_ps = self.schedulers.room_ps(self.window.comes(instruction, now_ps).at_ps);
        Some(self.begin_ps)
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
        let decided_ps = self.flow.map_or(0, |flow| self.known_ps(&flow.decided));
        now_ps.max(decided_ps) + self.branch_ps
    }

    /// Another block begins, with the instruction of a number, when that before has come up to its end at
    /// `now_ps` and left registers as they are then.
    #[inline]
    fn turns_to(&mut self, flow: Option<&'static Flow>, (now_ps, instruction): (u64, u64)) {
        let before = core::mem::replace(&mut self.flow, flow);
        self.last = instruction + flow.map_or(0, |flow| flow.instructions.saturating_sub(1));
        let Some(before) = before else {
            self.registers.clear();
            self.loads.clear();
            return;
        };
        let loaded_ps = core::mem::take(&mut self.loaded_ps);
        let mut latest_ps = loaded_ps;
        if self.registers.any(before.registers) || self.loads.any(before.loaded) {
            latest_ps = latest_ps.max(self.finish(before, now_ps));
        } else {
            self.registers.forget(before.changed);
            for (register, least_ps) in &before.tails {
                let known_ps = self.begin_ps + least_ps;
                if known_ps > now_ps {
                    self.registers.set(usize::from(*register), known_ps);
                    latest_ps = latest_ps.max(known_ps);
                }
            }
        }
        self.loads.clear();
        if latest_ps > now_ps {
            self.latest_ps = self.latest_ps.max(latest_ps);
            self.window.add(instruction.saturating_sub(1), latest_ps, latest_ps == loaded_ps);
        }
    }

    /// When an access can begin by an instruction that has come up at `now_ps`.
    #[inline]
    pub fn issues_ps(&self, accessor: &Accessor, now_ps: u64) -> u64 {
        now_ps.max(self.known_ps(&accessor.address))
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

    /// When the instruction of a number comes up that could at `now_ps`.
    #[inline]
    pub fn comes_ps(&self, instruction: u64, now_ps: u64) -> u64 {
        self.window.comes_ps(instruction, now_ps)
    }

    /// When what comes behind an access goes on whose instruction has come up and that can begin at these
    /// times, if nothing has to wait for it.
    #[inline]
    pub fn passes_ps(came_ps: u64, issue_ps: u64) -> u64 {
        came_ps.max(issue_ps.saturating_sub(AHEAD_PS))
    }

    /// Whether no line is on its way at this time.
    #[inline]
    pub fn is_idle(&self, now_ps: u64) -> bool {
        self.fills.is_idle(now_ps)
    }

    /// When a line is there that is on its way already.
    #[inline]
    pub fn under_way_ps(&self, line: u64, now_ps: u64) -> Option<u64> {
        self.fills.under_way_ps(line, now_ps)
    }

    /// When a miss that could begin at `issue_ps` finds a fill buffer.
    pub fn room_ps(&mut self, kind: Kind, issue_ps: u64) -> u64 {
        let of = (self.core.misses, &mut self.combining, kind);
        self.fills.room_ps(of, (self.begin_ps, issue_ps))
    }

    /// The same for a store past the caches.
    pub fn write_room_ps(&mut self, issue_ps: u64) -> u64 {
        let Core { misses, prefetch, writes, .. } = self.core;
        let most = writes.unwrap_or(misses + prefetch.unwrap_or(0));
        self.fills.room_ps((most, &mut self.combining, Kind::Load), (self.begin_ps, issue_ps))
    }

    /// What of `takes_ps` is left of a miss that begins at `now_ps`: its line may have been asked for
    /// before, as that of a stream. Never less than a hit of the nearest cache.
    #[inline]
    pub fn left_ps(&mut self, line: u64, now_ps: u64, takes_ps: u64, nearest_ps: u64) -> u64 {
        let Some(streams) = &mut self.streams else { return takes_ps };
        let ahead_ps = now_ps.saturating_sub(streams.asked_ps(line, now_ps));
        takes_ps.saturating_sub(ahead_ps).max(nearest_ps)
    }

    /// Returns the end of a translation that could begin at `issue_ps` and takes this long.
    #[inline]
    pub fn translated_ps(&mut self, issue_ps: u64, takes_ps: u64) -> u64 {
        self.walkers.translated_ps((self.begin_ps, issue_ps), takes_ps)
    }

    /// A line is on its way, asked for by an instruction.
    pub fn fill(&mut self, line: u64, (begin_ps, done_ps): (u64, u64), instruction: u64) {
        self.combining.give_up(line);
        self.fills.add(line, (begin_ps, done_ps));
        self.latest_ps = self.latest_ps.max(done_ps);
        self.window.add(instruction, done_ps, true);
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
            self.loaded_ps = self.loaded_ps.max(done_ps);
            let load = usize::from(accessor.load);
            self.loads.set(load, done_ps.max(self.loads.get(load)));
        }
    }

    /// When what comes behind an access goes on, which is made at these times; `taken`
    /// says whether another core had its line, of which what it wrote usually decides what comes next.
    #[inline(always)]
    pub fn goes_on_ps(&mut self, act: Act, taken: bool, times: Times) -> u64 {
        let Times { came_ps, issue_ps, done_ps } = times;
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
            _ => Self::passes_ps(came_ps, issue_ps),
        }
    }

    /// The instruction at this position, where it is known.
    #[inline]
    pub(crate) fn accessor(&self, position: u32) -> Option<&'static Accessor> {
        self.flow?.accessors.get(position as usize)
    }

    /// Nothing is under way any more, and another thread goes on; when that is.
    pub fn drain(&mut self) -> u64 {
        let latest_ps = self.settles_ps();
        self.combining.close();
        self.registers.clear();
        latest_ps
    }

    /// When all that is under way ends.
    pub fn settles_ps(&mut self) -> u64 {
        self.turns_to(None, (self.begin_ps, self.last + 1));
        self.window.clear();
        self.schedulers.clear();
        self.latest_ps
    }

    /// When a value of the block is known.
    #[inline]
    fn known_ps(&self, value: &Value) -> u64 {
        value.known_ps(self.begin_ps, &self.registers, &self.loads)
    }

    /// What of a block waits for its operands beyond `least_ps` takes entries of the schedulers.
    fn waits(&mut self, flow: &'static Flow, least_ps: u64) {
        for waiting in &flow.waiting {
            let until_ps = self.known_ps(&waiting.value);
            if until_ps > least_ps {
                self.schedulers.add(waiting.pool, waiting.count, until_ps);
            }
        }
    }

    /// The registers are as a block left them that has come up at `now_ps`; when all of them are known.
    fn finish(&mut self, flow: &'static Flow, now_ps: u64) -> u64 {
        self.results.clear();
        let mut latest_ps = 0;
        for (register, value) in &flow.results {
            let known_ps = self.known_ps(value);
            if known_ps > now_ps {
                self.results.set(usize::from(*register), known_ps);
                latest_ps = latest_ps.max(known_ps);
            }
        }
        // What waits is known no later than what comes of it.
        if let Some(least_ps) = self.schedulers.least_ps(now_ps)
            && latest_ps > least_ps
        {
            self.waits(flow, least_ps);
        }
        self.registers.replace(flow.changed, &self.results);
        latest_ps
    }
}

#[cfg(test)]
mod tests;
