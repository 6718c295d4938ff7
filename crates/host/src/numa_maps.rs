//! Pages per node of a mapping, from `/proc/self/numa_maps`.

use std::collections::BTreeMap;

use numalab_topology::NodeId;

/// Pages per node of the mappings that begin within `address` and `address + length`
/// (`numa(7)`). The unit is the kernel's: base pages, or huge pages of a reserved pool.
pub(crate) fn pages_per_node(numa_maps: &str, address: u64, length: u64) -> BTreeMap<NodeId, u64> {
    let mut pages = BTreeMap::new();
    for line in numa_maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let begin = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
        if !begin.is_some_and(|begin| begin >= address && begin - address < length) {
            continue;
        }
        for (node, count) in words.filter_map(count_on_node) {
            let sum: &mut u64 = pages.entry(node).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    pages
}

/// Reads `N0=512`.
fn count_on_node(word: &str) -> Option<(NodeId, u64)> {
    let (node, count) = word.strip_prefix('N')?.split_once('=')?;
    Some((NodeId(node.parse().ok()?), count.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NUMA_MAPS: &str = "\
5581a2e0a000 default file=/bin/cat mapped=2 N0=2 kernelpagesize_kB=4
7f0000000000 bind:1 anon=1536 dirty=1536 active=0 N0=24 N1=1512 kernelpagesize_kB=4
7f0000600000 bind:1 anon=1 dirty=1 N1=1 kernelpagesize_kB=4
7f1000000000 bind:1 file=/anon_hugepage\\040(deleted) huge anon=2 dirty=2 N1=2 kernelpagesize_kB=2048
";

    #[test]
    fn pages_are_told_by_node_for_the_range_alone() {
        let pages = pages_per_node(NUMA_MAPS, 0x7f00_0000_0000, 6 << 20);
        assert_eq!(pages, BTreeMap::from([(NodeId(0), 24), (NodeId(1), 1512)]));
    }

    #[test]
    fn a_mapping_that_was_split_is_added_up() {
        let pages = pages_per_node(NUMA_MAPS, 0x7f00_0000_0000, 8 << 20);
        assert_eq!(pages.get(&NodeId(1)), Some(&1513));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "(?s).{0,200}") {
            let _ = pages_per_node(&text, 0, u64::MAX);
        }
    }
}
