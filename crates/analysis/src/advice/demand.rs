//! What a program asks of each node's memory.

use numalab_record::ProgramMemory;

use super::{Candidate, MachineCosts};

/// What memory moves at a time.
const LINE_BYTES: f64 = 64.0;

/// Lines by position of the memory's node.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Demand(Vec<f64>);

impl Demand {
    /// As the program ran.
    pub(super) fn now(program: &ProgramMemory, machine: &MachineCosts) -> Self {
        Self::by(program, machine, |_, memory| memory)
    }

    /// As it would with a candidate.
    pub(super) fn then(
        candidate: &Candidate,
        program: &ProgramMemory,
        machine: &MachineCosts,
    ) -> Self {
        match candidate {
            Candidate::Bind { node } => Self::by(program, machine, |_, _| *node),
            Candidate::Interleave => {
                let all: f64 = Self::now(program, machine).0.iter().sum();
                let nodes = machine.nodes.len();
                Self(vec![all / nodes.max(1) as f64; nodes])
            }
            Candidate::WeightedInterleave { weights } => {
                let all: f64 = Self::now(program, machine).0.iter().sum();
                let sum = weights.iter().sum::<u32>().max(1);
                Self(weights.iter().map(|of| all * f64::from(*of) / f64::from(sum)).collect())
            }
            Candidate::FirstTouch { .. } | Candidate::Replicate { .. } => {
                Self::by(program, machine, |cpu, _| cpu)
            }
            Candidate::SeparateLines { .. } => Self::now(program, machine),
        }
    }

    fn by(program: &ProgramMemory, machine: &MachineCosts, node: impl Fn(u32, u32) -> u32) -> Self {
        let mut lines = vec![0.0; machine.nodes.len()];
        for by in program.regions.iter().flat_map(|region| &region.accesses) {
            let id = node(by.cpu_node, by.memory_node);
            if let Some(at) = machine.nodes.iter().position(|of| *of == id) {
                lines[at] += by.misses as f64;
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
