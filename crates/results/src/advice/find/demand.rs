//! Which nodes' memory threads would use, from where, and what all ask of it.

use numalab_record::{ProgramMemory, Region, RegionAccesses};

use super::Candidate;
use super::bound::bound_part;
use super::machine::MachineCosts;

/// What memory moves at a time.
pub(super) const LINE_BYTES: f64 = 64.0;

/// Whose memory a thread uses that uses a region on a node. Nodes by position.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Use {
    /// The node of its cpu.
    pub home: usize,
    /// Memory by node, and the part of what it uses that is there.
    pub parts: Vec<(usize, f64)>,
}

impl Use {
    /// As the program ran.
    pub(super) fn now(by: &RegionAccesses, machine: &MachineCosts) -> Self {
        let at = |node: u32| machine.position(node).unwrap_or(0);
        Self { home: at(by.cpu_node), parts: vec![(at(by.memory_node), 1.0)] }
    }

    /// As it would with a candidate. What the program itself bound stays.
    pub(super) fn then(
        candidate: &Candidate,
        region: &Region,
        by: &RegionAccesses,
        machine: &MachineCosts,
    ) -> Self {
        let at = |node: u32| machine.position(node).unwrap_or(0);
        let home = candidate.home(by.thread, by.cpu_node, machine);
        let free: Vec<usize> = match candidate {
            Candidate::Bind { .. } => vec![at(home)],
            // A thread takes along what it has on its own node, as if it had touched that first.
            Candidate::Pack if by.memory_node == by.cpu_node => vec![at(home)],
            Candidate::Interleave { .. } | Candidate::WeightedInterleave { .. } => {
                candidate.turns(machine).unwrap_or_default()
            }
            Candidate::BindRegion { address, nodes, .. } if *address == region.start => {
                nodes.iter().map(|node| at(*node)).collect()
            }
            Candidate::FirstTouch { .. }
            | Candidate::Replicate { .. }
            | Candidate::Balancing { .. } => vec![at(by.cpu_node)],
            _ => vec![at(by.memory_node)],
        };
        let bound = bound_part(region, by);
        let each = (1.0 - bound) / free.len().max(1) as f64;
        let mut parts: Vec<(usize, f64)> = free.into_iter().map(|node| (node, each)).collect();
        parts.push((at(by.memory_node), bound));
        Self { home: at(home), parts }
    }
}

/// What all would take at least by the bandwidth of each node, in ns.
pub(super) fn least_ns(
    candidate: &Candidate,
    program: &ProgramMemory,
    machine: &MachineCosts,
) -> f64 {
    let mut lines = vec![0.0; machine.nodes.len()];
    for region in &program.regions {
        for by in &region.accesses {
            for (node, part) in Use::then(candidate, region, by, machine).parts {
                lines[node] += by.misses as f64 * part;
            }
        }
    }
    let limited = lines.iter().zip(&machine.bandwidth_mb_s).filter(|(_, mb_s)| **mb_s > 0.0);
    limited.map(|(lines, mb_s)| lines * LINE_BYTES * 1000.0 / mb_s).fold(0.0, f64::max)
}
