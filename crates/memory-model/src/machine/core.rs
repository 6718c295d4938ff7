//! A core: what it has under way, and what its instructions take.

use serde::{Deserialize, Serialize};

use super::Timing;

/// How a core goes on while its loads are under way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Core {
    /// Lines that may be on their way to it at a time: fill buffers of its nearest cache, 1 to
    /// 1024.
    pub misses: u32,
    /// Instructions that it looks ahead of a load: entries of its reorder buffer, 1 to 65536.
    pub instructions: u32,
    /// What an instruction takes that waits for nothing, in ns, 0.001 to 1000.
    pub ns_per_instruction: f64,
    /// Lines that a prefetcher fetches ahead in a stream, 1 to 1024, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<u32>,
    /// Lines that it may write past its caches at a time, 1 to 1024; without it as many as it may have
    /// on their way to it, those of the prefetcher included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes: Option<u32>,
    /// What an atomic read-modify-write takes longer than a load of the same line, in ns, if that
    /// is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atomic_ns: Option<f64>,
    /// What it takes to begin anew behind a mispredicted branch once that is decided, in ns;
    /// without it 17 cycles, of two instructions each if `timing` does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_ns: Option<f64>,
    /// What instructions take by class; without it all of them take `ns_per_instruction`, and results are
    /// there at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
}

/// Cycles from when a branch turns out to be mispredicted to the first instruction behind it: a core's
/// pipeline from fetching to executing. 17 of Golden Cove, 18 of Zen 4 and 16 of Skylake (A. Fog,
/// "The microarchitecture of Intel, AMD, and VIA CPUs", agner.org/optimize, "branch misprediction penalty").
const BRANCH_CYCLES: f64 = 17.0;

/// Cycles that a load takes longer than a hit from when the data of stores are known that have only a part of it: it
/// waits until they are in the cache. Measured on Emerald and Granite Rapids, 20 in all; other families
/// are taken to have the same.
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

    /// Returns what a mispredicted branch takes once it is decided, in ns.
    pub fn branch_ns(&self) -> f64 {
        self.branch_ns.unwrap_or(BRANCH_CYCLES * self.cycle_ns())
    }

    /// Returns what a load takes longer that no store before it has all of, in ns.
    pub(crate) fn blocked_ns(&self) -> f64 {
        BLOCKED_CYCLES * self.cycle_ns()
    }

    /// Returns the time from one line to the next that come to the nearest cache, read and written,
    /// in ns.
    pub(crate) fn line_ns(&self) -> [f64; 2] {
        let cycles = self.timing.map_or([0.0; 2], |timing| timing.family.line_cycles());
        cycles.map(|cycles| cycles * self.cycle_ns())
    }

    fn cycle_ns(&self) -> f64 {
        self.timing.map_or(2.0 * self.ns_per_instruction, |timing| timing.cycle_ns)
    }
}
