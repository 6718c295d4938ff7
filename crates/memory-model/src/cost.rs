//! The cost of an access.

use crate::bandwidth::whole;
use crate::counters::Kind;
use crate::machine::Machine;
use alloc::vec::Vec;

/// Latencies of a machine by the vCPU's node and the memory's.
#[derive(Clone, Debug)]
pub struct Costs {
    load_ps: Vec<Vec<u64>>,
    store_ps: Vec<Vec<u64>>,
}

impl Costs {
    /// Creates the latencies of a machine.
    pub fn new(machine: &Machine) -> Self {
        let stores = machine.store_latency_ns.as_ref().unwrap_or(&machine.latency_ns);
        Self { load_ps: picoseconds(&machine.latency_ns), store_ps: picoseconds(stores) }
    }

    /// Returns the latency of an access to memory without other traffic.
    #[inline]
    pub fn memory_ps(&self, initiator: usize, target: usize, kind: Kind) -> u64 {
        match kind {
            Kind::Load => self.load_ps[initiator][target],
            Kind::Store => self.store_ps[initiator][target],
        }
    }
}

/// Converts nanoseconds to integer picoseconds.
pub fn ps(ns: f64) -> u64 {
    whole(ns * 1000.0)
}

fn picoseconds(rows: &[Vec<f64>]) -> Vec<Vec<u64>> {
    rows.iter().map(|row| row.iter().map(|&ns| ps(ns)).collect()).collect()
}

/// Hides a part of the cost of misses behind the surrounding instructions.
///
/// A processor continues while it waits: a loop of three instructions with one missing load takes
/// the time of the load. Each miss therefore hides the instructions since the previous miss, up to
/// a limit.
#[derive(Debug, Default)]
pub struct Overlap {
    last_miss: u64,
}

impl Overlap {
    /// Returns the part of a miss's cost that the instructions before it do not hide; `instruction`
    /// is the vCPU's count.
    #[inline]
    pub fn exposed_ps(&mut self, cost_ps: u64, instruction: u64, most: u32, ps_each: u64) -> u64 {
        let since = instruction.saturating_sub(self.last_miss).min(u64::from(most));
        self.last_miss = self.last_miss.max(instruction);
        cost_ps.saturating_sub(since * ps_each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_with_one_miss_takes_the_time_of_the_miss() {
        let mut overlap = Overlap::default();
        let mut time_ps = 0;
        for turn in 1..=1000 {
            time_ps += 3 * 1000 + overlap.exposed_ps(100_000, turn * 3, 8, 1000);
        }
        assert_eq!(time_ps, 1000 * 100_000);
    }

    #[test]
    fn work_beyond_the_limit_is_not_hidden() {
        let mut overlap = Overlap::default();
        assert_eq!(overlap.exposed_ps(100_000, 50, 8, 1000), 92_000);
        assert_eq!(overlap.exposed_ps(100_000, 50, 8, 1000), 100_000);
        assert_eq!(overlap.exposed_ps(3_000, 100, 8, 1000), 0);
    }
}
