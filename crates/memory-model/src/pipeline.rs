//! Models misses that overlap: the accesses that a core has in flight, and the instructions that
//! wait for them.
//!
//! This is an interval model like those of S. Eyerman et al., "A Mechanistic Performance Model for
//! Superscalar Out-of-Order Processors" (ACM TOCS 27, 2009): instructions take their own time and
//! are issued while others are in flight. An access waits for its address, and a miss for one of
//! the core's fill buffers; independent instructions pass it, until one of four limits is reached:
//! - no instruction is issued further ahead of an unfinished one than the reorder buffer (`window`)
//!   holds;
//! - no instruction is issued while instructions that wait for operands fill a scheduler
//!   (`schedulers`);
//! - no instruction is issued more than `AHEAD_PS` ahead of an access that waits for its address;
//! - an atomic read-modify-write, a fence, and a line from another core stop all later
//!   instructions.
//!
//! Values are followed through registers, by the block's instructions ([`flow`]), and through
//! memory, from recent stores to loads of the same bytes ([`stores`]). After a mispredicted branch,
//! instructions are issued only when its operands are known and the core has restarted. Stores past
//! the caches wait for nothing but a fill buffer ([`combining`]). Lines of sequential streams can
//! be prefetched (`streams`), and lines at the distances of an instruction (`strides`) or near those that
//! it misses (`neighbours`).

pub mod aarch64;
mod act;
mod astray;
pub mod combining;
mod ends;
mod fills;
pub mod flow;
mod front;
mod late;
mod lines;
mod neighbours;
pub mod operands;
mod parts;
mod prefetch;
mod queued;
pub(crate) mod schedulers;
mod served;
mod sets;
pub mod speeds;
pub mod stores;
pub(crate) mod streams;
mod strides;
mod tracked;
pub mod value;
mod walkers;
mod window;
pub mod x86;

pub use act::{Act, Times};
use astray::Astray;
pub(crate) use astray::Passed;
use combining::Combining;
use fills::Fills;
pub use fills::Miss;
use flow::{Accessor, Flow};
use late::Late;
use neighbours::Neighbours;
use queued::StoreQueue;
use schedulers::Schedulers;
pub(crate) use served::{Asked, Line, Reached};
use sets::Sets;
use stores::Stores;
use streams::Streams;
use strides::Strides;
use value::LOADS;
use walkers::Walkers;
pub use window::Came;
use window::Window;

use alloc::boxed::Box;

use crate::cost::ps;
use crate::counters::Kind;
use crate::machine::{Core, Family, Tlb};
use crate::predictor::Prediction;

/// Maximum time by which a core runs ahead of an access that waits for its address. Waiting
/// instructions fill a scheduler on a real core; this limit of a few memory latencies also keeps
/// accesses of vCPUs in the order of their own times.
const AHEAD_PS: u64 = 1_000_000;

/// The accesses and results that a core has in flight.
#[derive(Clone, Debug)]
pub struct Pipeline {
    core: Core,
    flow: Option<&'static Flow>,
    /// Time at which the value of each register is known, if still in the future.
    registers: Late<{ operands::REGISTERS }>,
    /// Time at which each load of the block ends, if still in the future.
    loads: Late<LOADS>,
    /// Registers that a finished block has changed; scratch space.
    results: Late<{ operands::REGISTERS }>,
    /// Start of the block, and the number of its last instruction.
    begin_ps: u64,
    last: u64,
    /// Time at which all loads of the block end.
    loaded_ps: u64,
    /// Time at which everything in flight ends.
    latest_ps: u64,
    /// Slots of the reorder buffer that earlier blocks took in addition to one for each instruction.
    further_slots: u64,
    /// The unfinished instructions, and stores that have retired before their lines arrived.
    window: Window,
    queue: StoreQueue,
    /// Instructions that wait for their operands.
    schedulers: Schedulers,
    fills: Fills,
    sets: Sets,
    /// Non-temporal stores, which use fill buffers as well.
    combining: Combining,
    /// Recent stores that forward data to loads.
    stores: Stores,
    /// The prefetchers of lines in a row, of lines at the distances of instructions, and of lines near
    /// those that they miss.
    streams: Option<Streams>,
    strides: Option<Strides>,
    neighbours: Option<Neighbours>,
    walkers: Walkers,
    /// Extra time of an atomic read-modify-write over a load.
    atomic_ps: Option<u64>,
    /// Time to restart after a mispredicted branch is resolved.
    branch_ps: u64,
    /// Time lost to a prediction that comes late.
    late_ps: u64,
    /// Time at which all instructions of earlier blocks are fetched, and the maximum time by which
    /// instructions are fetched before they can be issued.
    fetched_ps: u64,
    most_ahead_ps: u64,
    /// Time at which the cache has taken all stores of earlier blocks, and time of the stores that
    /// wait in front of it at most.
    stored_ps: u64,
    queue_ps: u64,
    /// Extra time of a store whose value a load gets at renaming.
    renamed_ps: u64,
    /// Time of a store to a line other than that of the store before it; the line of the last
    /// store; and the time at which the cache has taken all such lines.
    line_ps: u64,
    stored_line: u64,
    lined_ps: u64,
    /// The prediction of the branch at the block's end.
    prediction: Prediction,
    /// The wrong path after the last mispredicted branch, while it matters, and the number of
    /// blocks for which paths are worth recording.
    astray: Option<Box<Astray>>,
    expected: u32,
    /// The atomic instruction whose load was the last access that stopped the core.
    atomic_load: Option<&'static Accessor>,
}

impl Pipeline {
    /// Creates a core with nothing in flight.
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
            further_slots: 0,
            window: Window::new(core.instructions),
            queue: StoreQueue::new(core.store_queue()),
            schedulers: core.schedulers(),
            fills: Fills::new(core.line_ns().map(ps), core.far_line_ns().map(ps)),
            sets: Sets::new(ps(core.set_line_ns()), core.store_queue()),
            combining: Combining::new(core.misses),
            stores: core.stores(),
            streams: core.prefetch.map(|lines| Streams::new(lines, core.reach())),
            strides: core.prefetches_strides().then(Strides::default),
            neighbours: core.neighbours_ns().map(|later_ns| Neighbours::new(ps(later_ns))),
            walkers: Walkers::of(tlb),
            atomic_ps: core.atomic_ns.map(ps),
            branch_ps: ps(core.branch_ns()),
            late_ps: ps(core.late_ns()),
            fetched_ps: 0,
            most_ahead_ps: ps(core.fetched_ns()),
            stored_ps: 0,
            queue_ps: ps(core.stores_ns()),
            renamed_ps: ps(core.renamed_store_ns()),
            line_ps: ps(core.stored_line_ns()),
            stored_line: 0,
            lined_ps: 0,
            prediction: Prediction::Known,
            astray: None,
            expected: 0,
            atomic_load: None,
        }
    }

    /// Begins a block with a first instruction that could be issued at `now_ps`; returns the time
    /// at which it is issued. A block without a flow waits for everything in flight, because its
    /// operands are unknown.
    pub fn begin(&mut self, flow: Option<&'static Flow>, now_ps: u64, instruction: u64) -> Came {
        if let Some(at_ps) = self.begins_at_once(flow, now_ps, instruction) {
            return Came { at_ps, for_access: false };
        }
        let resumes_ps = self.restarts_ps(now_ps, instruction);
        let drains = flow.is_some_and(|flow| flow.drains || flow.fence);
        if drains {
            self.combining.close();
        }
        self.turns_to(flow, (now_ps, instruction));
        let mut came = self.window.comes(self.slot(instruction), resumes_ps);
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

    /// Begins a block unless it waits for an access in flight; it may wait for results.
    #[inline]
    pub fn begins_at_once(
        &mut self,
        flow: Option<&'static Flow>,
        now_ps: u64,
        instruction: u64,
    ) -> Option<u64> {
        let is_free = flow.is_some_and(|flow| !flow.fence && !flow.drains);
        let of_last = self.flow.map_or(0, |flow| flow.further_slots);
        if self.prediction != Prediction::Known
            || !is_free
            || self.window.keeps_for_access(self.slot(instruction) + of_last)
        {
            return None;
        }
        let further = self.flow.map_or(0, |flow| flow.instructions);
        if self.schedulers.may_fill(further) && !self.fills.is_idle(now_ps) {
            return None;
        }
        self.turns_to(flow, (now_ps, instruction));
        self.begin_ps =
            self.schedulers.room_ps(self.window.comes(self.slot(instruction), now_ps).at_ps);
        Some(self.begin_ps)
    }

    /// Returns the slot of the reorder buffer that the instruction with this number takes, counted from the
    /// first instruction on.
    #[inline]
    fn slot(&self, instruction: u64) -> u64 {
        instruction + self.further_slots
    }

    /// Returns the family of the core, if known.
    pub(crate) fn family(&self) -> Option<Family> {
        self.core.timing.map(|timing| timing.family)
    }

    /// Switches to another block, beginning with instruction `instruction`, once the previous one
    /// is issued to its end at `now_ps` and has changed the registers.
    #[inline]
    fn turns_to(&mut self, flow: Option<&'static Flow>, (now_ps, instruction): (u64, u64)) {
        let before = core::mem::replace(&mut self.flow, flow);
        self.last = instruction + flow.map_or(0, |flow| flow.instructions.saturating_sub(1));
        let Some(before) = before else {
            self.registers.clear();
            self.loads.clear();
            return;
        };
        self.further_slots += before.further_slots;
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
            let last = self.slot(instruction.saturating_sub(1));
            self.window.add(last, latest_ps, latest_ps == loaded_ps);
        }
    }

    /// Returns the time at which the access of an instruction of the block can begin, if it is issued at
    /// `now_ps`.
    #[inline]
    pub fn issue_ps(&self, by: Option<&Accessor>, now_ps: u64) -> u64 {
        now_ps.max(by.map_or(self.latest_ps, |by| self.known_ps(&by.address)))
    }

    /// Returns the issue time of an instruction with this access that could be issued at `now_ps`.
    #[inline]
    pub fn comes_ps(&self, (instruction, kind): (u64, Kind), now_ps: u64) -> u64 {
        let came_ps = self.window.comes_ps(self.slot(instruction), now_ps);
        if kind == Kind::Store { self.queue.room_ps(came_ps) } else { came_ps }
    }

    /// Returns the time at which instructions after an access continue if none has to wait for it,
    /// given the times at which its instruction is issued and it can begin.
    #[inline]
    pub fn passes_ps(came_ps: u64, issue_ps: u64) -> u64 {
        came_ps.max(issue_ps.saturating_sub(AHEAD_PS))
    }

    /// Records the end of an instruction's load, which began at `now_ps`. One that takes no time is late if
    /// its address was, unless it gets the value at renaming.
    #[inline]
    fn loaded(&mut self, by: Option<&Accessor>, now_ps: u64, done_ps: u64) {
        let Some(accessor) = by else {
            self.latest_ps = self.latest_ps.max(done_ps);
            return;
        };
        if done_ps > now_ps || done_ps > self.begin_ps && !accessor.renames {
            self.latest_ps = self.latest_ps.max(done_ps);
            self.loaded_ps = self.loaded_ps.max(done_ps);
            let load = usize::from(accessor.load);
            self.loads.set(load, done_ps.max(self.loads.get(load)));
        }
    }

    /// Returns the time at which instructions after an access continue; `taken` is true if its line
    /// came from another core, whose value usually decides what comes next.
    #[inline(always)]
    pub fn goes_on_ps(&mut self, act: Act, taken: bool, times: Times) -> u64 {
        let Times { came_ps, issue_ps, done_ps } = times;
        let Act { by, kind, .. } = act;
        match kind {
            Kind::Load => self.loaded(by, issue_ps, done_ps),
            Kind::Store => self.stored(act, issue_ps),
        }
        match (by, self.atomic_ps) {
            (Some(atomic @ Accessor { atomic: true, .. }), Some(atomic_ps)) => {
                // QEMU reports both accesses, or a store alone; the first one is charged for both.
                let of_load = self.atomic_load.is_some_and(|of| core::ptr::eq(of, atomic));
                let goes_with_load = kind == Kind::Store && of_load;
                self.atomic_load = by.filter(|_| kind == Kind::Load);
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

    /// Returns the instruction at this position, if known.
    #[inline]
    pub(crate) fn accessor(&self, position: u32) -> Option<&'static Accessor> {
        self.flow?.accessors.get(position as usize)
    }
}

#[cfg(test)]
mod tests;
