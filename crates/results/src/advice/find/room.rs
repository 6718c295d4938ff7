//! The room on nodes that a candidate needs.

use std::collections::BTreeMap;

use numalab_record::{PagesAlike, ProgramMemory, Region};

use super::machine::MachineCosts;
use super::{Candidate, Untried};

/// The size of a page that a profile counts.
pub(super) const PAGE_BYTES: u64 = 4096;

/// Returns the reason why memory that a candidate moves does not fit on its nodes. A node with an
/// unknown amount of free memory always has room.
pub(super) fn lacking(
    candidate: &Candidate,
    program: &ProgramMemory,
    machine: &MachineCosts,
) -> Option<Untried> {
    let needed = needed(candidate, program, machine);
    needed.into_iter().find_map(|(node, needed_bytes)| {
        let left_bytes = *machine.left_bytes.get(machine.position(node)?)?;
        (needed_bytes > left_bytes).then_some(Untried::NoRoom { node, needed_bytes, left_bytes })
    })
}

/// Returns the bytes that a candidate places on each node.
fn needed(
    candidate: &Candidate,
    program: &ProgramMemory,
    machine: &MachineCosts,
) -> BTreeMap<u32, u64> {
    let all = || program.regions.iter().map(bytes).fold(0, u64::saturating_add);
    let each = |nodes: &[u32], bytes: u64| -> BTreeMap<u32, u64> {
        let part = bytes.div_ceil(nodes.len().max(1) as u64);
        nodes.iter().map(|node| (*node, part)).collect()
    };
    let of_region = |address: u64| {
        program.regions.iter().find(|region| region.start == address).map_or(0, bytes)
    };
    match candidate {
        Candidate::Bind { node } => each(&[*node], all()),
        Candidate::Interleave { nodes } | Candidate::FastMemory { nodes } => each(nodes, all()),
        Candidate::WeightedInterleave { weights } => weighted(weights, all(), machine),
        Candidate::BindRegion { address, nodes, .. }
        | Candidate::PlaceFile { address, nodes, .. } => each(nodes, of_region(*address)),
        Candidate::FirstTouch { .. } => by_users(program),
        Candidate::HugePages
        | Candidate::Pack
        | Candidate::Cpus { .. }
        | Candidate::Balancing { .. }
        | Candidate::Replicate { .. }
        | Candidate::SeparateLines { .. }
        | Candidate::Ranks { .. } => BTreeMap::new(),
    }
}

fn bytes(region: &Region) -> u64 {
    let resident = region.resident.iter().map(|of| of.pages).fold(0, u64::saturating_add);
    let used = region.pages.iter().map(|of| of.pages).fold(0, u64::saturating_add);
    resident.max(used).saturating_mul(PAGE_BYTES)
}

fn weighted(weights: &[u32], bytes: u64, machine: &MachineCosts) -> BTreeMap<u32, u64> {
    let sum: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    let part = |weight: u32| {
        let part = u128::from(bytes) * u128::from(weight) / sum.max(1);
        u64::try_from(part).unwrap_or(u64::MAX)
    };
    machine.nodes.iter().copied().zip(weights.iter().map(|weight| part(*weight))).collect()
}

/// Returns the pages by the node whose cpus use them most.
fn by_users(program: &ProgramMemory) -> BTreeMap<u32, u64> {
    let mut of_node = BTreeMap::new();
    let pages = program.regions.iter().flat_map(|region| &region.pages);
    for PagesAlike { main_node, pages, .. } in pages {
        let sum: &mut u64 = of_node.entry(*main_node).or_default();
        *sum = sum.saturating_add(pages.saturating_mul(PAGE_BYTES));
    }
    of_node
}

#[cfg(test)]
mod tests {
    use numalab_record::{NodePages, Sharing};

    use super::*;

    fn alike(main_node: u32, pages: u64) -> PagesAlike {
        PagesAlike {
            memory_node: 0,
            main_node,
            bound: false,
            sharing: Sharing::Private,
            pages,
            accesses: 1,
            waits: Vec::new(),
        }
    }

    /// Returns a program with 300 pages used by node 0 and 100 by node 1, in two regions.
    fn program() -> ProgramMemory {
        let file = Region {
            start: 0x9000,
            resident: vec![NodePages { memory_node: 0, pages: 200 }],
            ..Region::default()
        };
        let own = Region { pages: vec![alike(0, 100), alike(1, 100)], ..Region::default() };
        ProgramMemory { regions: vec![own, file], ..ProgramMemory::default() }
    }

    #[test]
    fn a_candidate_needs_room_on_each_of_its_nodes() {
        let machine = |left: [u64; 2]| MachineCosts {
            nodes: vec![0, 1],
            left_bytes: left.map(|pages| pages * PAGE_BYTES).to_vec(),
            ..MachineCosts::default()
        };
        let lacks = |candidate: &Candidate, left| {
            lacking(candidate, &program(), &machine(left)).map(|why| match why {
                Untried::NoRoom { node, needed_bytes, left_bytes } => {
                    (node, needed_bytes / PAGE_BYTES, left_bytes / PAGE_BYTES)
                }
                other => panic!("{other:?}"),
            })
        };
        let nodes = vec![0, 1];
        let both = Candidate::Interleave { nodes: nodes.clone() };
        let file = |nodes: Vec<u32>| {
            let path = "/data".to_owned();
            Candidate::PlaceFile { path, address: 0x9000, nodes }
        };
        assert_eq!(lacks(&Candidate::Bind { node: 1 }, [0, 400]), None);
        assert_eq!(lacks(&Candidate::Bind { node: 1 }, [900, 399]), Some((1, 400, 399)));
        assert_eq!(lacks(&both, [200, 200]), None);
        assert_eq!(lacks(&both, [900, 199]), Some((1, 200, 199)));
        let weights = Candidate::WeightedInterleave { weights: vec![3, 1] };
        assert_eq!(lacks(&weights, [299, 100]), Some((0, 300, 299)));
        assert_eq!(lacks(&file(vec![1]), [0, 199]), Some((1, 200, 199)));
        assert_eq!(lacks(&file(nodes), [100, 100]), None);
        let touch = Candidate::FirstTouch { line: None, region: String::new() };
        assert_eq!(lacks(&touch, [100, 99]), Some((1, 100, 99)));
        assert_eq!(lacks(&Candidate::HugePages, [0, 0]), None);
        let unknown = MachineCosts { nodes: vec![0, 1], ..MachineCosts::default() };
        assert_eq!(lacking(&both, &program(), &unknown), None);
    }
}
