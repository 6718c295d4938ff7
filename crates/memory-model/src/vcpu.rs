//! What the model keeps of one vCPU.

use crate::cache::Cache;
use crate::cost::Overlap;
use crate::counters::{Figure, Kind};
use crate::leaving::Leaving;
use crate::machine::{Core, Tlb};
use crate::pipeline::Pipeline;
use crate::pipeline::flow::Flow;
use crate::pipeline::operands::Ends;
use crate::predictor::Predictor;
use crate::sleep::Debt;
use crate::tlb::Tlbs;
use alloc::vec::Vec;
use spin::Mutex;

/// Looks at one address in a row by which a vCPU waits.
const LOOKS: u64 = 16;

/// A vCPU: what others may look at and change, and what only the thread that runs it does.
#[derive(Debug)]
pub(crate) struct Vcpu {
    /// Its own caches, nearest first. Other vCPUs take lines from them.
    pub caches: Vec<Cache>,
    /// Those lines that others are taking.
    pub leaving: Leaving,
    /// Its own time, by which it queues for bandwidth. Written by the thread that runs it, and by
    /// others where a marker has all vCPUs go on together; what the vCPU's own thread writes at that
    /// very moment may stay, which its next meeting with the others mends.
    pub time_ps: Figure,
    /// Number of the thread that runs on it, where threads are followed.
    pub thread: Figure,
    /// The rest, for the thread that runs it.
    pub state: Mutex<VcpuState>,
}

/// Where a block of instructions lies: its address, and that behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// Of its first instruction.
    pub address: u64,
    /// Behind its last one.
    pub end: u64,
}

/// What the thread that runs a vCPU alone changes.
#[derive(Debug)]
pub(crate) struct VcpuState {
    /// Its TLBs, where addresses are translated.
    pub tlbs: Option<Tlbs>,
    /// What it has under way, where misses overlap.
    pub pipeline: Option<Pipeline>,
    /// How it predicts branches, where they do.
    pub predictor: Option<Predictor>,
    /// The block that it began last.
    before: Option<(Place, Ends)>,
    /// What its misses hide, where they do not.
    pub overlap: Overlap,
    /// Instructions in the blocks that it began.
    pub instructions: u64,
    /// Those of them in the present block.
    pub block: u64,
    /// How long all of them took to come up.
    pub taken_ps: u64,
    /// Charged, but less than the clock's nanosecond.
    rest_ps: u64,
    /// The address that it loaded last, and how often in a row.
    watched: u64,
    looks: u64,
    /// Time not slept yet.
    pub debt: Debt,
}

impl Vcpu {
    /// A vCPU with empty caches.
    pub fn new(caches: Vec<Cache>, tlb: Option<&Tlb>, core: Option<Core>) -> Self {
        let state = VcpuState {
            tlbs: tlb.map(Tlbs::new),
            pipeline: core.map(|core| Pipeline::new(core, tlb)),
            predictor: core.map(|_| Predictor::default()),
            before: None,
            overlap: Overlap::default(),
            instructions: 0,
            block: 0,
            taken_ps: 0,
            rest_ps: 0,
            watched: 0,
            looks: 0,
            debt: Debt::default(),
        };
        Self {
            caches,
            leaving: Leaving::default(),
            time_ps: Figure::default(),
            thread: Figure::default(),
            state: Mutex::new(state),
        }
    }
}

impl VcpuState {
    /// Begins a block of so many instructions, which take so long to come up.
    #[inline]
    pub fn begin_block(&mut self, instructions: u64, takes_ps: u64) {
        self.instructions += instructions;
        self.block = instructions;
        self.taken_ps += takes_ps;
    }

    /// It comes to a block; whether the branch before that was mispredicted.
    #[inline]
    pub fn comes_to(&mut self, place: Place, flow: Option<&Flow>) -> bool {
        let before = self.before.replace((place, flow.map_or(Ends::Known, |flow| flow.ends)));
        let (Some((from, ends)), Some(predictor)) = (before, &mut self.predictor) else {
            return false;
        };
        match ends {
            Ends::Known => false,
            Ends::Conditional => predictor.misses(from.end, place.address != from.end),
            Ends::Indirect => predictor.misses_target(from.end, place.address),
        }
    }

    /// Another thread goes on: no branch of its leads to the next block.
    pub fn forget_block(&mut self) {
        self.before = None;
    }

    /// Number of the instruction at this place of the present block.
    #[inline]
    pub fn instruction(&self, position: u32) -> u64 {
        self.instructions - self.block + u64::from(position) + 1
    }

    /// It accesses memory; how often it has looked at this address in a row.
    #[inline]
    pub fn look(&mut self, address: u64, kind: Kind) -> u64 {
        if kind == Kind::Store || self.watched != address {
            self.watched = address;
            self.looks = 0;
        }
        self.looks += 1;
        self.looks
    }

    /// Whether it has looked at one address so often, again, that it waits for another vCPU.
    #[inline]
    pub fn spins(&mut self) -> bool {
        let spins = self.looks % LOOKS == LOOKS - 1;
        self.looks += u64::from(spins);
        spins
    }

    /// How many instructions of the block come behind one.
    #[inline]
    pub fn behind(&self, position: u32) -> u64 {
        self.block.saturating_sub(u64::from(position) + 1)
    }

    /// How long the instructions take to come up that are behind this place of the present block.
    #[inline]
    pub fn behind_ps(&self, position: u32, ps_each: u64) -> u64 {
        let accessor = self.pipeline.as_ref().and_then(|pipeline| pipeline.accessor(position));
        accessor.map_or_else(|| self.behind(position) * ps_each, |accessor| accessor.behind_ps)
    }

    /// The whole nanoseconds that the clock must go on by, or back.
    #[inline]
    pub fn clock_ns(&mut self, by_ps: i64) -> i64 {
        let rest_ps = self.rest_ps.cast_signed() + by_ps;
        self.rest_ps = rest_ps.rem_euclid(1000).cast_unsigned();
        rest_ps.div_euclid(1000)
    }
}
