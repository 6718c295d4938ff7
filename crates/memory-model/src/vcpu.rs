//! What the model keeps of one vCPU.

use crate::cache::Cache;
use crate::cost::Overlap;
use crate::counters::{Figure, Kind};
use crate::elsewhere::Elsewhere;
use crate::machine::{Core, Tlb};
use crate::outcome::LastAccess;
use crate::pipeline::Pipeline;
use crate::sleep::Debt;
use crate::tlb::Tlbs;
use alloc::vec::Vec;
use spin::Mutex;

/// Looks at one address in a row by which a vCPU waits.
const LOOKS: u64 = 16;

/// The state of a vCPU, written by the thread that runs it: no lock is taken for each
/// access. Others write it where a marker has all vCPUs go on together; what the vCPU's own
/// thread writes at that very moment may stay, which its next meeting with the others mends.
#[derive(Debug)]
pub struct Vcpu {
    /// Its own caches, nearest first.
    pub caches: Vec<Cache>,
    /// Its TLBs, where addresses are translated.
    pub tlbs: Option<Tlbs>,
    /// Its own time, by which it queues for bandwidth.
    pub time_ps: Figure,
    /// Instructions in the blocks that it began.
    pub instructions: Figure,
    /// Those of them in the present block.
    pub block: Figure,
    /// Charged, but less than the clock's nanosecond.
    pub rest_ps: Figure,
    /// What it has under way, where misses overlap.
    pub pipeline: Option<Mutex<Pipeline>>,
    /// The same with other placements of pages.
    pub(crate) elsewhere: Mutex<Vec<Elsewhere>>,
    /// What its misses hide, where they do not.
    pub overlap: Overlap,
    /// The address that it loaded last, and how often in a row.
    pub watched: Figure,
    /// As above.
    pub looks: Figure,
    /// Time not slept yet.
    pub debt: Mutex<Debt>,
    /// How its last access went.
    pub(crate) last: LastAccess,
}

impl Vcpu {
    /// A vCPU with empty caches.
    pub fn new(caches: Vec<Cache>, tlb: Option<&Tlb>, core: Option<Core>) -> Self {
        Self {
            caches,
            tlbs: tlb.map(Tlbs::new),
            pipeline: core.map(|core| {
                let walkers = tlb.map_or(0, |tlb| tlb.walkers);
                Mutex::new(Pipeline::new(core, walkers))
            }),
            elsewhere: Mutex::default(),
            time_ps: Figure::default(),
            instructions: Figure::default(),
            block: Figure::default(),
            rest_ps: Figure::default(),
            overlap: Overlap::default(),
            watched: Figure::default(),
            looks: Figure::default(),
            debt: Mutex::default(),
            last: LastAccess::default(),
        }
    }

    /// Begins a block of so many instructions.
    #[inline]
    pub fn begin_block(&self, instructions: u64, ps_each: u64) {
        self.instructions.add(instructions);
        self.block.set(instructions);
        self.time_ps.add(instructions * ps_each);
    }

    /// Number of the instruction at this place of the present block.
    #[inline]
    pub fn instruction(&self, position: u32) -> u64 {
        self.instructions.get() - self.block.get() + u64::from(position) + 1
    }

    /// It accesses memory; how often it has looked at this address in a row.
    #[inline]
    pub fn look(&self, address: u64, kind: Kind) -> u64 {
        if kind == Kind::Store || self.watched.get() != address {
            self.watched.set(address);
            self.looks.set(0);
        }
        self.looks.add(1);
        self.looks.get()
    }

    /// Whether it has looked at one address so often, again, that it waits for another vCPU.
    #[inline]
    pub fn spins(&self) -> bool {
        let spins = self.looks.get() % LOOKS == LOOKS - 1;
        self.looks.add(u64::from(spins));
        spins
    }

    /// When the instruction at this place of the present block came up, if none waited since.
    #[inline]
    pub fn reached_ps(&self, position: u32, ps_each: u64) -> u64 {
        let behind = self.block.get().saturating_sub(u64::from(position) + 1);
        self.time_ps.get().saturating_sub(behind * ps_each)
    }

    /// The whole nanoseconds that the clock must go on by, or back.
    #[inline]
    pub fn clock_ns(&self, by_ps: i64) -> i64 {
        let rest_ps = self.rest_ps.get().cast_signed() + by_ps;
        self.rest_ps.set(rest_ps.rem_euclid(1000).cast_unsigned());
        rest_ps.div_euclid(1000)
    }

    /// Takes time; the whole nanoseconds that the clock must go on by.
    #[inline]
    pub fn take_ns(&self, exposed_ps: u64) -> u64 {
        self.time_ps.add(exposed_ps);
        let rest_ps = self.rest_ps.get() + exposed_ps;
        self.rest_ps.set(rest_ps % 1000);
        rest_ps / 1000
    }
}
