//! Accesses the parts of a working set, and predicts their cost.

use numalab_membench::{
    Access, Arrays, Chase, Cycle, Isa, Kernel, Line, LineSize, Pattern, Stream, Walk,
};
use numalab_topology::{Machine, NodeId, NodeSet};

use crate::error::MeasureError;

/// Lines of a page of 4 KiB.
const PAGE_LINES: usize = 4096 / Line::SIZE_BYTES;

/// True if an access waits for the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TierAccess {
    /// An access waits for the previous one: latency determines the time.
    Dependent,
    /// An access does not wait: many accesses are in flight, and bandwidth determines the time if
    /// memory is saturated. Pages take turns, one line each.
    Independent,
}

impl TierAccess {
    /// Prepares each part of this memory, in order of address.
    pub(super) fn prepare<'m>(
        self,
        parts: &[u64],
        mut lines: &'m mut [Line],
        seed: u64,
    ) -> Result<Vec<Prepared<'m>>, MeasureError> {
        let mut prepared = Vec::new();
        for &bytes in parts {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            let (part, rest) = lines.split_at_mut((bytes / Line::SIZE_BYTES).min(lines.len()));
            lines = rest;
            prepared.push(self.part(part, bytes, seed)?);
        }
        Ok(prepared)
    }

    fn part(
        self,
        lines: &mut [Line],
        bytes: usize,
        seed: u64,
    ) -> Result<Prepared<'_>, MeasureError> {
        Ok(match self {
            Self::Dependent => {
                let cycle = Cycle::new(Pattern::Random, bytes, LineSize::Bytes64, seed)?;
                Prepared::Chase(Chase::build(cycle, lines)?)
            }
            Self::Independent => {
                // Untouched memory has no node.
                lines.fill(Line::ZERO);
                let by_page = Access::Strided { stride_bytes: PAGE_LINES * Line::SIZE_BYTES };
                let arrays = Arrays::One(lines);
                Prepared::Stream(Stream::new(Kernel::Read, by_page, Isa::detect(), arrays)?)
            }
        })
    }

    /// Predicts the time of accesses from the firmware's figures; `counted` has the number of
    /// accesses by node, for each tier. Dependent accesses take the sum of their latencies.
    /// Independent ones take as long as the busiest tier needs for its bandwidth, since all work at
    /// the same time. `None` if the firmware lacks a figure that is needed.
    pub(super) fn cost_ns(
        self,
        machine: &Machine,
        tiers: &[NodeSet],
        counted: impl Fn(NodeId) -> u64,
    ) -> Option<f64> {
        let node_ns = |node: NodeId| match counted(node) {
            0 => Some(0.0),
            count => Some(count as f64 * self.each_ns(machine, node)?),
        };
        let tier_ns = |tier: &NodeSet| tier.iter().map(node_ns).sum::<Option<f64>>();
        let each: Vec<f64> = tiers.iter().map(tier_ns).collect::<Option<_>>()?;
        Some(match self {
            Self::Dependent => each.iter().sum(),
            Self::Independent => each.iter().copied().fold(0.0, f64::max),
        })
    }

    /// Returns the firmware's cost of an access to one line of a node's memory.
    fn each_ns(self, machine: &Machine, node: NodeId) -> Option<f64> {
        let (latency_ps, mb_per_s) = machine.best_read(node);
        match self {
            Self::Dependent => latency_ps.map(|ps| ps as f64 / 1000.0),
            Self::Independent => mb_per_s.map(|mb| Line::SIZE_BYTES as f64 * 1000.0 / mb as f64),
        }
    }
}

/// A part of the working set that is ready to be accessed.
#[derive(Debug)]
pub(super) enum Prepared<'m> {
    Chase(Chase<'m>),
    Stream(Stream<'m>),
}

impl<'m> Prepared<'m> {
    /// Starts to access it from its beginning.
    pub(super) fn begin(&mut self) -> PartAccess<'_, 'm> {
        match self {
            Self::Chase(chase) => PartAccess::Dependent(chase.walk()),
            Self::Stream(stream) => PartAccess::Independent(stream),
        }
    }

    /// Accesses all of it once.
    pub(super) fn pass(&mut self) {
        match self {
            Self::Chase(chase) => chase.walk().loads(chase.cycle().nodes() as u64),
            Self::Stream(stream) => _ = stream.pass(),
        }
    }
}

/// Accesses to a part that are in progress.
#[derive(Debug)]
pub(super) enum PartAccess<'p, 'm> {
    Dependent(Walk<'p>),
    Independent(&'p mut Stream<'m>),
}

impl PartAccess<'_, '_> {
    /// Performs `lines` more accesses.
    pub(super) fn access(&mut self, lines: u64) {
        match self {
            Self::Dependent(walk) => walk.loads(lines),
            Self::Independent(stream) => {
                _ = stream.advance(usize::try_from(lines).unwrap_or(usize::MAX));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use numalab_topology::{EmulatedTier, TierSpec};

    use super::*;

    fn machine(tiers: &[(u64, u64)]) -> Machine {
        let tier = |&(ns, mb_per_s): &(u64, u64)| EmulatedTier {
            memory_bytes: 1 << 30,
            latency_ps: ns * 1000,
            bandwidth_mb_per_s: Some(mb_per_s),
            side_cache_bytes: None,
        };
        TierSpec { tiers: tiers.iter().map(tier).collect() }.machine(1).unwrap()
    }

    #[test]
    fn dependent_accesses_cost_latencies_and_others_the_time_of_the_busiest_tier() {
        let machine = machine(&[(100, 2000), (300, 1000), (800, 500)]);
        let tiers: Vec<NodeSet> = ["0", "1", "2"].map(|set| set.parse().unwrap()).into();
        let cost = |access: TierAccess, counted: [u64; 3]| {
            access.cost_ns(&machine, &tiers, |node| counted[node.0 as usize]).unwrap()
        };
        assert_eq!(cost(TierAccess::Dependent, [10, 5, 0]), 2500.0);
        assert_eq!(cost(TierAccess::Dependent, [10, 5, 1]), 3300.0);
        // 64 bytes take 32 ns on the fast tier, 64 on the next and 128 on the last.
        assert_eq!(cost(TierAccess::Independent, [10, 5, 0]), 320.0);
        assert_eq!(cost(TierAccess::Independent, [10, 10, 0]), 640.0);
        assert_eq!(cost(TierAccess::Independent, [10, 10, 6]), 768.0);
        let mut unknown = machine.clone();
        unknown.access.clear();
        assert_eq!(TierAccess::Dependent.cost_ns(&unknown, &tiers, |_| 1), None);
    }

    #[test]
    fn every_line_of_a_part_is_accessed_in_either_way() {
        for access in [TierAccess::Dependent, TierAccess::Independent] {
            let mut memory = vec![Line::ZERO; 3 * 64];
            let parts = [4096, 8192];
            let mut prepared = access.prepare(&parts, &mut memory, 7).unwrap();
            assert_eq!(prepared.len(), 2);
            for (part, bytes) in prepared.iter_mut().zip(parts) {
                part.pass();
                part.begin().access(bytes / Line::SIZE_BYTES as u64 + 3);
                let bytes = usize::try_from(bytes).unwrap();
                match part {
                    Prepared::Chase(chase) => assert_eq!(chase.cycle().nodes() * 64, bytes),
                    Prepared::Stream(stream) => assert_eq!(stream.array_bytes(), bytes),
                }
            }
        }
    }
}
