//! What a program asks of each node's memory.

use numalab_record::{ProgramMemory, Region, RegionAccesses};

use super::Candidate;
use super::bound::bound_part;
use super::machine::MachineCosts;

/// What memory moves at a time.
const LINE_BYTES: f64 = 64.0;

/// Lines by position of the memory's node.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Demand(Vec<f64>);

impl Demand {
    /// As the program ran.
    pub(super) fn now(program: &ProgramMemory, machine: &MachineCosts) -> Self {
        Self::by(program, machine, |_, _| 1.0, |by| by.memory_node)
    }

    /// As it would with a candidate.
    pub(super) fn then(
        candidate: &Candidate,
        program: &ProgramMemory,
        machine: &MachineCosts,
    ) -> Self {
        let free = |region: &Region, by: &RegionAccesses| 1.0 - bound_part(region, by);
        let stays = |by: &RegionAccesses| by.memory_node;
        let moved = match candidate {
            Candidate::Bind { node } => Self::by(program, machine, free, |_| *node),
            Candidate::Interleave { .. } | Candidate::WeightedInterleave { .. } => {
                let turns = candidate.turns(machine).unwrap_or_default();
                Self::by(program, machine, free, stays).in_turn(&turns)
            }
            Candidate::BindRegion { address, nodes, .. } => {
                let is_meant = |region: &Region| region.start == *address;
                let of = |meant: bool| {
                    let part = move |region: &Region, by: &RegionAccesses| {
                        if is_meant(region) == meant { free(region, by) } else { 0.0 }
                    };
                    Self::by(program, machine, part, stays)
                };
                let turns = nodes.iter().filter_map(|node| machine.position(*node));
                of(false).and(&of(true).in_turn(&turns.collect::<Vec<_>>()))
            }
            Candidate::FirstTouch { .. }
            | Candidate::Replicate { .. }
            | Candidate::Balancing { .. } => Self::by(program, machine, free, |by| by.cpu_node),
            // A thread takes along what it has on its own node, as if it had touched that first.
            Candidate::Pack => Self::by(program, machine, free, |by| {
                let packed = machine.packed_node(by.thread);
                packed.filter(|_| by.memory_node == by.cpu_node).unwrap_or(by.memory_node)
            }),
            Candidate::HugePages
            | Candidate::FastMemory { .. }
            | Candidate::Cpus { .. }
            | Candidate::Ranks { .. }
            | Candidate::SeparateLines { .. } => Self::by(program, machine, free, stays),
        };
        moved.and(&Self::by(program, machine, bound_part, stays))
    }

    /// That of two together.
    fn and(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(one, other)| one + other).collect())
    }

    /// All of it on these nodes in turn.
    fn in_turn(&self, turns: &[usize]) -> Self {
        let part = |at| turns.iter().filter(|of| **of == at).count() as f64;
        let each = self.0.iter().sum::<f64>() / turns.len().max(1) as f64;
        Self((0..self.0.len()).map(|at| each * part(at)).collect())
    }

    /// The part of misses that is meant, on the nodes that are.
    fn by(
        program: &ProgramMemory,
        machine: &MachineCosts,
        part: impl Fn(&Region, &RegionAccesses) -> f64,
        node: impl Fn(&RegionAccesses) -> u32,
    ) -> Self {
        let mut lines = vec![0.0; machine.nodes.len()];
        for region in &program.regions {
            for by in &region.accesses {
                let id = node(by);
                if let Some(at) = machine.position(id) {
                    lines[at] += by.misses as f64 * part(region, by);
                }
            }
        }
        Self(lines)
    }

    /// Of one node; 1 at least.
    pub(super) fn of(&self, machine: &MachineCosts, node: u32) -> f64 {
        let at = machine.position(node);
        at.map_or(1.0, |at| self.0[at].max(1.0))
    }

    /// Of the node that is asked for most.
    pub(super) fn of_most(&self) -> f64 {
        self.0.iter().copied().fold(1.0, f64::max)
    }

    /// What it takes at least by the bandwidth of each node, in ns.
    pub(super) fn least_ns(&self, machine: &MachineCosts) -> f64 {
        let limited = self.0.iter().zip(&machine.bandwidth_mb_s).filter(|(_, mb_s)| **mb_s > 0.0);
        limited.map(|(lines, mb_s)| lines * LINE_BYTES * 1000.0 / mb_s).fold(0.0, f64::max)
    }
}
