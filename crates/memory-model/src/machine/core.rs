//! Cores: the number of accesses in flight, and the speed of instructions.

use serde::{Deserialize, Serialize};

use super::{Renaming, Timing};
use crate::cost::ps;
use crate::pipeline::schedulers::Schedulers;
use crate::pipeline::stores::Stores;
use crate::pipeline::streams::Reach;

/// Limits of a core's overlap, and the speed of its instructions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Core {
    /// Maximum number of lines in flight to the core: the fill buffers of its nearest cache, 1 to
    /// 1024.
    pub misses: u32,
    /// Number of instructions that the core looks ahead of a load: entries of its reorder buffer, 1
    /// to 65536.
    pub instructions: u32,
    /// Time of an instruction that waits for nothing, in ns, 0.001 to 1000.
    pub ns_per_instruction: f64,
    /// Number of lines that a prefetcher fetches ahead in a stream, 1 to 1024, if the core has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<u32>,
    /// Maximum number of lines written past the caches at a time, 1 to 1024; by default `misses`
    /// plus `prefetch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes: Option<u32>,
    /// Extra time of an atomic read-modify-write over a load of the same line, in ns, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atomic_ns: Option<f64>,
    /// Time to restart after a mispredicted branch is resolved, in ns; by default the
    /// family's, or 17 cycles of two instructions each without `timing`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_ns: Option<f64>,
    /// Time of instructions by class; without it each instruction takes `ns_per_instruction`, and
    /// results are available at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
}

/// Cycles to restart after a mispredicted branch on a core of no known family.
const BRANCH_CYCLES: f64 = 17.0;

/// Extra cycles of a load that recent stores cover only in part, on a core of no known family.
const BLOCKED_CYCLES: f64 = 15.0;

impl Core {
    /// The buffers of Intel's Golden Cove (Intel 64 and IA-32 Architectures Optimization Reference
    /// Manual, 2.3), and one instruction a cycle at 4 GHz: an assumption.
    pub const TYPICAL: Self = Self {
        misses: 16,
        instructions: 512,
        ns_per_instruction: 0.25,
        prefetch: None,
        writes: None,
        atomic_ns: None,
        branch_ns: None,
        timing: None,
    };

    /// Returns the time to restart after a mispredicted branch is resolved, in ns.
    pub fn branch_ns(&self) -> f64 {
        let cycles = self.timing.map_or(BRANCH_CYCLES, |timing| timing.family.branch_cycles());
        self.branch_ns.unwrap_or(cycles * self.cycle_ns())
    }

    /// Returns the time lost to the prediction of an indirect branch that has had several targets.
    pub(crate) fn late_ns(&self) -> f64 {
        let cycles = self.timing.map_or(0.0, |timing| timing.family.late_cycles());
        cycles * self.cycle_ns()
    }

    /// Returns the extra times, in ns, of a load that earlier stores cover only in part, and of a
    /// load that one store covers.
    pub(crate) fn forward_ns(&self) -> [f64; 2] {
        let blocked = self.timing.map_or(BLOCKED_CYCLES, |timing| timing.family.blocked_cycles());
        let forward = self.timing.map_or(0.0, |timing| timing.family.forward_cycles());
        [blocked, forward].map(|cycles| cycles * self.cycle_ns())
    }

    /// Returns the time between two lines that arrive in the nearest cache, in ns, for lines that
    /// are read and lines that are written.
    pub(crate) fn line_ns(&self) -> [f64; 2] {
        let cycles = self.timing.map_or([0.0; 2], |timing| timing.family.line_cycles());
        cycles.map(|cycles| cycles * self.cycle_ns())
    }

    /// Returns the time between two lines that arrive from beyond its own caches, in ns, for lines in
    /// a row and others.
    pub(crate) fn far_line_ns(&self) -> [f64; 2] {
        let cycles = self.timing.map_or([0.0; 2], |timing| timing.family.far_line_cycles());
        cycles.map(|cycles| cycles * self.cycle_ns())
    }

    /// Returns the time between two lines that arrive in one set of the nearest cache, in ns.
    pub(crate) fn set_line_ns(&self) -> f64 {
        self.timing.map_or(0.0, |of| of.family.set_line_cycles() * of.cycle_ns)
    }

    /// Returns the maximum time by which the core fetches instructions ahead of their issue, in ns:
    /// a queue of 72 (Intel's Optimization Reference Manual, 2.3, for a thread of Golden Cove, and
    /// AMD's guide for family 17h, 2.9, "micro-op queue").
    pub(crate) fn fetched_ns(&self) -> f64 {
        self.timing.map_or(0.0, |timing| 72.0 * timing.cycle_ns / f64::from(timing.width))
    }

    /// Returns the number of entries of the core's store queue; 0 if unknown.
    pub(crate) fn store_queue(&self) -> u32 {
        self.timing.map_or(0, |timing| timing.family.store_queue())
    }

    /// Returns the time that the cache takes for a full store queue, in ns.
    pub(crate) fn stores_ns(&self) -> f64 {
        let each_ns = self.timing.map_or(0.0, |of| of.store.each * of.cycle_ns);
        f64::from(self.store_queue()) * each_ns
    }

    /// Returns the time of a store to another line than the previous store's, in ns.
    pub(crate) fn stored_line_ns(&self) -> f64 {
        self.timing.map_or(0.0, |of| of.family.stored_line_cycles() * of.cycle_ns)
    }

    /// Returns the extra time of a store whose value a load gets at renaming, in ns.
    pub(crate) fn renamed_store_ns(&self) -> f64 {
        self.timing.map_or(0.0, |of| of.family.renamed_store_cycles() * of.cycle_ns)
    }

    /// Returns true if it prefetches lines at the distances of its instructions.
    pub(crate) fn prefetches_strides(&self) -> bool {
        self.prefetch.is_some()
            && self.timing.is_some_and(|timing| timing.family.prefetches_strides())
    }

    /// Returns the time from a miss to the request of nearby lines, in ns, if the core prefetches
    /// them.
    pub(crate) fn neighbours_ns(&self) -> Option<f64> {
        self.prefetch?;
        self.timing.and_then(|of| Some(of.family.neighbours_cycles()? * of.cycle_ns))
    }

    /// Returns the distances of the core's prefetcher, limited to the length of a stream.
    pub(crate) fn reach(&self) -> Option<Reach> {
        self.timing.filter(|_| self.prefetches_strides()).map(|of| of.family.reach())
    }

    /// Returns an empty table of recent stores.
    pub(crate) fn stores(&self) -> Stores {
        let stores = Stores::new(self.instructions, self.forward_ns().map(ps).into());
        match self.timing.map(|timing| timing.family.renaming()) {
            Some(Renaming::Any) => stores.by_instruction(),
            _ => stores,
        }
    }

    /// Returns the schedulers, if the core's family is known.
    pub(crate) fn schedulers(&self) -> Schedulers {
        let of = self.timing.and_then(|timing| timing.family.schedulers());
        let width = self.timing.map_or(1, |timing| timing.width);
        Schedulers::new(of, (width, ps(self.cycle_ns())))
    }

    fn cycle_ns(&self) -> f64 {
        self.timing.map_or(2.0 * self.ns_per_instruction, |timing| timing.cycle_ns)
    }
}
