//! What the model keeps of one vCPU.

use crate::cache::Cache;
use crate::cost::Overlap;
use crate::sleep::Debt;

/// The state of a vCPU that only its own accesses change.
#[derive(Debug)]
pub struct Vcpu {
    /// Its own caches, nearest first.
    pub caches: Vec<Cache>,
    /// Its own time, by which it queues for bandwidth.
    pub time_ps: u64,
    /// Instructions in the blocks that it began.
    pub instructions: u64,
    /// Those of them in the present block.
    pub block: u64,
    /// Charged, but less than the clock's nanosecond.
    pub rest_ps: u64,
    /// What its misses hide.
    pub overlap: Overlap,
    /// Time not slept yet.
    pub debt: Debt,
}

impl Vcpu {
    /// A vCPU with empty caches.
    pub fn new(caches: Vec<Cache>) -> Self {
        Self {
            caches,
            time_ps: 0,
            instructions: 0,
            block: 0,
            rest_ps: 0,
            overlap: Overlap::default(),
            debt: Debt::default(),
        }
    }

    /// Begins a block of so many instructions.
    pub fn begin_block(&mut self, instructions: u64, ps_each: u64) {
        self.instructions += instructions;
        self.block = instructions;
        self.time_ps += instructions * ps_each;
    }

    /// Number of the instruction at this place of the present block.
    pub fn instruction(&self, position: u32) -> u64 {
        self.instructions - self.block + u64::from(position) + 1
    }

    /// Takes time; the whole nanoseconds that the clock must go on by.
    pub fn take_ns(&mut self, exposed_ps: u64) -> u64 {
        self.time_ps += exposed_ps;
        self.rest_ps += exposed_ps;
        let whole_ns = self.rest_ps / 1000;
        self.rest_ps %= 1000;
        whole_ns
    }
}
