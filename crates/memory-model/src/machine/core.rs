//! Cores: the number of accesses in flight, and the speed of instructions.

use serde::{Deserialize, Serialize};

use super::Timing;
use crate::cost::ps;
use crate::pipeline::schedulers::Schedulers;

/// Limits of a core's overlap, and the speed of its instructions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Core {
    /// Maximum number of lines in flight to the core: fill buffers of its nearest cache, 1 to 1024.
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
    /// Time to restart after a mispredicted branch is resolved, in ns; by default 17 cycles, of two
    /// instructions each without `timing`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_ns: Option<f64>,
    /// Time of instructions by class; without it each takes `ns_per_instruction`, and results are
    /// available at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
}

/// Cycles from the resolution of a mispredicted branch to the first instruction after it: a core's
/// pipeline from fetch to execution. 17 on Golden Cove, 18 on Zen 4 and 16 on Skylake (A. Fog, "The
/// microarchitecture of Intel, AMD, and VIA CPUs", agner.org/optimize, "branch misprediction
/// penalty").
const BRANCH_CYCLES: f64 = 17.0;

/// Extra cycles over a hit for a load that recent stores cover only in part, from the time their
/// data are known: it waits until they are in the cache. Measured on Emerald and Granite Rapids, 20
/// in all; assumed for other families.
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
        self.branch_ns.unwrap_or(BRANCH_CYCLES * self.cycle_ns())
    }

    /// Returns the extra time of a load that no earlier store covers entirely, in ns.
    pub(crate) fn blocked_ns(&self) -> f64 {
        BLOCKED_CYCLES * self.cycle_ns()
    }

    /// Returns the time between two lines that arrive in the nearest cache, in ns, for lines that
    /// are read and lines that are written.
    pub(crate) fn line_ns(&self) -> [f64; 2] {
        let cycles = self.timing.map_or([0.0; 2], |timing| timing.family.line_cycles());
        cycles.map(|cycles| cycles * self.cycle_ns())
    }

    /// Returns the schedulers, if those of its family are known.
    pub(crate) fn schedulers(&self) -> Schedulers {
        let sizes = self.timing.and_then(|timing| timing.family.schedulers());
        let width = self.timing.map_or(1, |timing| timing.width);
        Schedulers::new(sizes, (width, ps(self.cycle_ns())))
    }

    fn cycle_ns(&self) -> f64 {
        self.timing.map_or(2.0 * self.ns_per_instruction, |timing| timing.cycle_ns)
    }
}
