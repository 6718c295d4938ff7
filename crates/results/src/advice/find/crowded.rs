//! Shared memory that fills the nodes on which it was first touched.

use std::collections::BTreeMap;

use numalab_record::{ProgramMemory, Region};
use serde::{Deserialize, Serialize};

use super::machine::MachineCosts;
use super::room::PAGE_BYTES;

/// Minimum size in bytes of a segment that is reported.
const LARGE_BYTES: u64 = 64 << 20;
/// Share of a node's free memory above which a segment fills the node.
const FILLED: f64 = 0.9;

/// A shared segment that one thread placed for all others, on nodes that it fills.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CrowdedSegment {
    /// Its file, or `[anonymous]`.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// The nodes that it fills.
    pub nodes: Vec<u32>,
    /// The nodes over which the segment would fit if interleaved.
    pub over: Vec<u32>,
}

/// Returns the largest shared segment that fills nodes while others have room.
pub(super) fn crowded(program: &ProgramMemory, machine: &MachineCosts) -> Option<CrowdedSegment> {
    let shared = program.regions.iter().filter(|region| region.shared);
    shared.filter_map(|region| crowded_segment(region, machine)).max_by_key(|segment| segment.bytes)
}

fn crowded_segment(region: &Region, machine: &MachineCosts) -> Option<CrowdedSegment> {
    let room = |node: u32| Some(*machine.left_bytes.get(machine.position(node)?)? as f64 * FILLED);
    let mut on: BTreeMap<u32, u64> = BTreeMap::new();
    for pages in region.pages.iter().filter(|pages| !pages.bound) {
        let sum = on.entry(pages.memory_node).or_default();
        *sum = sum.saturating_add(pages.pages.saturating_mul(PAGE_BYTES));
    }
    let bytes = on.values().copied().fold(0, u64::saturating_add);
    let fills = |(node, bytes): &(&u32, &u64)| room(**node).is_some_and(|of| **bytes as f64 >= of);
    let nodes: Vec<u32> = on.iter().filter(fills).map(|(node, _)| *node).collect();
    let mut over = machine.memory_nodes(false);
    // A node that is too small for an equal part leaves more for the others.
    loop {
        let each = bytes as f64 / over.len().max(1) as f64;
        let fitting: Vec<u32> =
            over.iter().copied().filter(|node| room(*node).is_some_and(|of| each < of)).collect();
        if fitting.len() == over.len() {
            break;
        }
        over = fitting;
    }
    let is_better = over.len() > 1 && over.iter().any(|node| !nodes.contains(node));
    let is_crowded = bytes >= LARGE_BYTES && !nodes.is_empty() && is_better;
    is_crowded.then(|| CrowdedSegment { name: region.name.clone(), bytes, nodes, over })
}

#[cfg(test)]
mod tests {
    use numalab_record::{PagesAlike, Sharing};

    use super::*;

    const MIB: u64 = 1 << 20;

    fn program(shared: bool, on: &[(u32, u64)]) -> ProgramMemory {
        let alike = |&(memory_node, mib): &(u32, u64)| PagesAlike {
            memory_node,
            main_node: 0,
            bound: false,
            sharing: Sharing::Read,
            pages: mib * MIB / PAGE_BYTES,
            accesses: 1,
            waits: Vec::new(),
        };
        let region = Region {
            name: "[anonymous]".to_owned(),
            shared,
            pages: on.iter().map(alike).collect(),
            ..Region::default()
        };
        ProgramMemory { regions: vec![region], ..ProgramMemory::default() }
    }

    fn found(program: &ProgramMemory, left_mib: &[u64]) -> Option<(Vec<u32>, Vec<u32>)> {
        let nodes: Vec<u32> = (0..).take(left_mib.len()).collect();
        let machine = MachineCosts {
            cpus: vec![1; nodes.len()],
            has_memory: vec![true; nodes.len()],
            left_bytes: left_mib.iter().map(|mib| mib * MIB).collect(),
            nodes,
            ..MachineCosts::default()
        };
        crowded(program, &machine).map(|segment| (segment.nodes, segment.over))
    }

    #[test]
    fn a_shared_segment_that_fills_its_nodes_is_to_be_spread_where_it_fits() {
        let two = program(true, &[(0, 95), (1, 100)]);
        assert_eq!(found(&two, &[100, 100, 900, 900]), Some((vec![0, 1], vec![0, 1, 2, 3])));
        assert_eq!(found(&two, &[100, 100, 900, 10]), Some((vec![0, 1], vec![0, 1, 2])));
        assert_eq!(found(&two, &[400, 400, 900, 900]), None, "its nodes have room");
        assert_eq!(found(&two, &[100, 100, 10, 10]), None, "no other has room");
        assert_eq!(found(&two, &[]), None, "the room is unknown");
        assert_eq!(found(&program(false, &[(0, 95)]), &[100, 900]), None, "it is private");
        assert_eq!(found(&program(true, &[(0, 40)]), &[40, 900]), None, "it is small");
    }
}
