//! Memory demand by node: the nodes of each thread and of the memory that it uses, and the
//! bandwidth that all threads need together.

use numalab_record::{ProgramMemory, Region, RegionAccesses};

use super::Candidate;
use super::bound::bound_part;
use super::machine::MachineCosts;

/// Bytes per memory transfer: one cache line.
pub(super) const LINE_BYTES: f64 = 64.0;

/// The memory of one region that a thread on a given node uses. Nodes are given by position.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Use {
    /// The node of the thread's cpu.
    pub home: usize,
    /// Memory nodes with their shares of the thread's accesses.
    pub parts: Vec<(usize, f64)>,
}

impl Use {
    /// Returns the memory that the thread used in the profiled run.
    pub(super) fn now(by: &RegionAccesses, machine: &MachineCosts) -> Self {
        let at = |node: u32| machine.position(node).unwrap_or(0);
        Self { home: at(by.cpu_node), parts: vec![(at(by.memory_node), 1.0)] }
    }

    /// Returns the memory that the thread would use under a candidate. Pages that the program binds
    /// stay.
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
            // A thread takes local pages along, as if it had touched them first on its new node.
            Candidate::Pack if by.memory_node == by.cpu_node => vec![at(home)],
            Candidate::Interleave { .. } | Candidate::WeightedInterleave { .. } => {
                candidate.turns(machine).unwrap_or_default()
            }
            Candidate::BindRegion { address, nodes, .. }
            | Candidate::PlaceFile { address, nodes, .. }
                if *address == region.start =>
            {
                nodes.iter().map(|node| at(*node)).collect()
            }
            Candidate::FirstTouch { .. }
            | Candidate::Replicate { .. }
            | Candidate::Balancing { .. } => vec![at(by.cpu_node)],
            _ => vec![at(by.memory_node)],
        };
        let bound = match candidate {
            Candidate::BindRegion { .. } => 0.0,
            _ => bound_part(region, by),
        };
        let each = (1.0 - bound) / free.len().max(1) as f64;
        let mut parts: Vec<(usize, f64)> = free.into_iter().map(|node| (node, each)).collect();
        parts.push((at(by.memory_node), bound));
        Self { home: at(home), parts }
    }
}

/// Returns the lower bound on the run time set by each node's bandwidth, in ns.
pub(super) fn least_ns(
    candidate: &Candidate,
    program: &ProgramMemory,
    machine: &MachineCosts,
) -> f64 {
    let mut lines = vec![0.0; machine.nodes.len()];
    for region in &program.regions {
        for by in &region.accesses {
            for (node, part) in Use::then(candidate, region, by, machine).parts {
                lines[node] += by.misses.unwrap_or(0) as f64 * part;
            }
        }
    }
    let limited = lines.iter().zip(&machine.bandwidth_mb_s).filter(|(_, mb_s)| **mb_s > 0.0);
    limited.map(|(lines, mb_s)| lines * LINE_BYTES * 1000.0 / mb_s).fold(0.0, f64::max)
}
