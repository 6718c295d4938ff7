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
    /// Additional latency of a line outside the pages that a vCPU has last read.
    pub other_page_ps: u64,
}

impl Costs {
    /// Creates the latencies of a machine.
    pub fn new(machine: &Machine) -> Self {
        let stores = machine.store_latency_ns.as_ref().unwrap_or(&machine.latency_ns);
        Self {
            load_ps: picoseconds(&machine.latency_ns),
            store_ps: picoseconds(stores),
            other_page_ps: ps(machine.other_page_ns),
        }
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

/// Hides a part of the cost of misses behind the surrounding instructions. A processor continues
/// while it waits: a loop of three instructions with one missing load takes the time of the load.
/// Each miss therefore hides the instructions since the previous miss, up to a limit.
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
    use crate::arguments::machine_of;

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

    #[test]
    fn loads_and_stores_cost_the_machines_time_from_each_node_to_each() {
        let mut machine = machine_of("cpus=0.1,memory=1G.1G,distances=10.20/20.10");
        machine.latency_ns = [[80.0, 130.0], [140.0, 90.0]].map(Vec::from).to_vec();
        let of = |machine: &Machine, kind| {
            let costs = Costs::new(machine);
            [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(from, to)| costs.memory_ps(from, to, kind))
        };
        let loads = [80_000, 130_000, 140_000, 90_000];
        assert_eq!([of(&machine, Kind::Load), of(&machine, Kind::Store)], [loads, loads]);
        machine.store_latency_ns = Some([[85.0, 135.0], [145.0, 95.5]].map(Vec::from).to_vec());
        let stores = [85_000, 135_000, 145_000, 95_500];
        assert_eq!([of(&machine, Kind::Load), of(&machine, Kind::Store)], [loads, stores]);
    }
}
