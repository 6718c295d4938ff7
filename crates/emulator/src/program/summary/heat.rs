//! Finds a region's hot pages, and their nodes.

use std::collections::BTreeMap;

use numalab_memory_model::machine::Machine;
use numalab_memory_model::space::PAGE_BYTES;
use numalab_record::{NodePages, RegionPart};

use crate::program::page_use::Seen;

/// Hot pages take this percentage of a region's accesses.
const HOT_PERCENT: u64 = 90;
/// Number of parts into which a region is divided.
const PARTS: u64 = 64;

/// Returns the smallest number of pages that account for [`HOT_PERCENT`] of the accesses.
pub fn hot_pages(pages: &BTreeMap<u64, Seen>) -> u64 {
    let mut heat: Vec<u64> = pages.values().map(accesses).collect();
    heat.sort_unstable_by(|one, other| other.cmp(one));
    let all: u64 = heat.iter().sum();
    let mut sum = 0;
    let cold = |accesses: &&u64| {
        let before = sum;
        sum += **accesses;
        before * 100 < all * HOT_PERCENT
    };
    heat.iter().take_while(cold).count() as u64
}

/// Counts pages by node.
pub fn resident(pages: &BTreeMap<u64, Seen>, machine: &Machine) -> Vec<NodePages> {
    let on = |node: usize| pages.values().filter(|page| page.node == node).count() as u64;
    let nodes = machine.nodes.iter().enumerate();
    let counts = nodes.map(|(at, node)| NodePages { memory_node: node.id, pages: on(at) });
    counts.filter(|of| of.pages > 0).collect()
}

/// Sums accesses by parts of a range; each part has the node of its most accessed page.
pub fn parts(
    (start, end): (u64, u64),
    pages: &BTreeMap<u64, Seen>,
    machine: &Machine,
) -> Vec<RegionPart> {
    if start >= end || pages.is_empty() {
        return Vec::new();
    }
    let length = (end - start).div_ceil(PARTS).next_multiple_of(PAGE_BYTES);
    let count = (end - start).div_ceil(length);
    let part = |at: u64| {
        let (from, to) = (start + at * length, (start + (at + 1) * length).min(end));
        let numbers = from / PAGE_BYTES..to.div_ceil(PAGE_BYTES);
        let within = || pages.range(numbers.clone()).map(|(_, page)| page);
        let hottest = within().max_by_key(|page| accesses(page));
        RegionPart {
            end: to,
            memory_node: hottest.map(|page| machine.nodes[page.node].id),
            accesses: within().map(accesses).sum(),
            remote: within().map(|page| accesses(page) - page.accesses[page.node]).sum(),
            stores: None,
        }
    };
    (0..count).map(part).collect()
}

fn accesses(page: &Seen) -> u64 {
    page.accesses.iter().sum()
}

#[cfg(test)]
mod tests {
    use numalab_memory_model::arguments::Arguments;
    use numalab_memory_model::machine::MOST_NODES;

    use super::*;

    fn page(node: usize, loads: [u64; 2]) -> Seen {
        let mut accesses = [0; MOST_NODES];
        accesses[..2].copy_from_slice(&loads);
        Seen {
            region: 0,
            node,
            bound: false,
            threads: 1,
            nodes: 1,
            accesses,
            shared: [0; 2],
            memory_ps: [0; MOST_NODES],
        }
    }

    fn pages(each: &[(usize, [u64; 2])]) -> BTreeMap<u64, Seen> {
        (16..).zip(each.iter().map(|(node, loads)| page(*node, *loads))).collect()
    }

    #[test]
    fn hot_pages_are_the_fewest_that_take_most_accesses() {
        let hot = |loads: &[u64]| {
            let each: Vec<_> = loads.iter().map(|loads| (0, [*loads, 0])).collect();
            hot_pages(&pages(&each))
        };
        assert_eq!(hot(&[30, 900, 20, 50]), 1);
        assert_eq!(hot(&[300, 500, 150, 50]), 3);
        assert_eq!(hot(&[]), 0);
    }

    #[test]
    fn parts_add_up_to_all_accesses_and_nodes_to_all_pages() {
        let words = ["cpus=0.1", "memory=1G.1G", "distances=10.20/20.10"];
        let machine = Arguments::parse(words, |_| unreachable!()).expect("a machine").machine;
        let pages = pages(&[(0, [5, 1]), (1, [2, 7]), (1, [0, 0]), (0, [0, 3])]);
        let found = parts((16 * PAGE_BYTES, 20 * PAGE_BYTES), &pages, &machine);
        let shown: Vec<_> =
            found.iter().map(|of| (of.accesses, of.remote, of.memory_node)).collect();
        assert_eq!(shown, [(6, 1, Some(0)), (9, 2, Some(1)), (0, 0, Some(1)), (3, 3, Some(0))]);
        assert_eq!(found[3].end, 20 * PAGE_BYTES);
        let large = parts((16 * PAGE_BYTES, 16 * PAGE_BYTES + (1 << 30)), &pages, &machine);
        assert_eq!((large.len(), large[0].accesses), (64, 18));
        let nodes: Vec<_> =
            resident(&pages, &machine).iter().map(|of| (of.memory_node, of.pages)).collect();
        assert_eq!(nodes, [(0, 2), (1, 2)]);
    }
}
