//! What a program asks of each node's memory.

use numalab_record::{ProgramMemory, Region, RegionAccesses};

use super::bound::bound_part;
use super::{Candidate, MachineCosts};

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
            Candidate::Interleave | Candidate::WeightedInterleave { .. } => {
                let all: f64 = Self::by(program, machine, free, stays).0.iter().sum();
                let nodes = machine.nodes.len();
                let turns = candidate.turns(nodes).unwrap_or_default();
                let part = |at| turns.iter().filter(|of| **of == at).count() as f64;
                let each = all / turns.len().max(1) as f64;
                Self((0..nodes).map(|at| each * part(at)).collect())
            }
            Candidate::FirstTouch { .. } | Candidate::Replicate { .. } => {
                Self::by(program, machine, free, |by| by.cpu_node)
            }
            // A thread takes along what it has on its own node, as if it had touched that first.
            Candidate::Pack => Self::by(program, machine, free, |by| {
                let packed = machine.packed_node(by.thread);
                packed.filter(|_| by.memory_node == by.cpu_node).unwrap_or(by.memory_node)
            }),
            Candidate::HugePages | Candidate::SeparateLines { .. } => {
                Self::by(program, machine, free, stays)
            }
        };
        let bound = Self::by(program, machine, bound_part, stays);
        Self(moved.0.iter().zip(&bound.0).map(|(moved, bound)| moved + bound).collect())
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
                if let Some(at) = machine.nodes.iter().position(|of| *of == id) {
                    lines[at] += by.misses as f64 * part(region, by);
                }
            }
        }
        Self(lines)
    }

    /// Of one node; 1 at least.
    pub(super) fn of(&self, machine: &MachineCosts, node: u32) -> f64 {
        let at = machine.nodes.iter().position(|of| *of == node);
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
