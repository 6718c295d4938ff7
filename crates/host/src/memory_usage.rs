//! A process's memory by kind and node, as counted by `numastat -p`.

use std::collections::BTreeMap;

use numalab_topology::NodeId;

use crate::proc::{NumaKind, PageBytes, numa_maps};
use crate::root::Root;
use crate::system_page::usual_page_bytes;

/// Bytes on each node by kind of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Memory in pages of a reserved pool.
    pub huge: BTreeMap<NodeId, u64>,
    /// Memory of the heap (`brk(2)`).
    pub heap: BTreeMap<NodeId, u64>,
    pub stack: BTreeMap<NodeId, u64>,
    /// Memory of all other mappings.
    pub private: BTreeMap<NodeId, u64>,
}

/// Returns the calling process's memory by node and kind, from `/proc/self/numa_maps`; `None` if
/// the kernel has no such file.
pub fn memory_use() -> Option<MemoryUse> {
    let root = Root::live();
    let text = root.document("proc/self/numa_maps").ok()?;
    Some(count(&text, usual_page_bytes(&root)))
}

fn count(text: &str, unprinted: PageBytes) -> MemoryUse {
    let mut found = MemoryUse::default();
    for mapping in numa_maps(text) {
        let kind = match mapping.kind {
            NumaKind::HugePool => &mut found.huge,
            NumaKind::Heap => &mut found.heap,
            NumaKind::Stack => &mut found.stack,
            NumaKind::Other => &mut found.private,
        };
        for (node, bytes) in mapping.bytes_by_node(unprinted) {
            let sum: &mut u64 = kind.entry(node).or_default();
            *sum = sum.saturating_add(bytes);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NUMA_MAPS: &str = "\
5581a2e0a000 default file=/bin/cat mapped=2 N0=2 kernelpagesize_kB=4
5581a3e0a000 default heap anon=3 dirty=3 N0=1 N1=2 kernelpagesize_kB=4
7f1000000000 bind:1 file=/anon_hugepage\\040(deleted) huge anon=2 dirty=2 N1=2 kernelpagesize_kB=2048
7f1010000000 bind:1 file=/anon_hugepage huge anon=3 dirty=3 N1=3
7ffd00000000 default stack anon=3 dirty=3 N0=3 kernelpagesize_kB=4
";
    const UNPRINTED: PageBytes = PageBytes { base: 4096, pool: 1 << 20 };

    #[test]
    fn memory_is_counted_by_kind_and_node_in_pages_of_its_size() {
        let found = count(NUMA_MAPS, UNPRINTED);
        assert_eq!(found.private, BTreeMap::from([(NodeId(0), 8192)]));
        assert_eq!(found.heap, BTreeMap::from([(NodeId(0), 4096), (NodeId(1), 8192)]));
        assert_eq!(found.huge, BTreeMap::from([(NodeId(1), (4 + 3) << 20)]));
        assert_eq!(found.stack, BTreeMap::from([(NodeId(0), 12_288)]));
    }

    proptest! {
        #[test]
        fn any_text_is_counted_without_a_panic(text in "(?s).{0,200}") {
            let _ = count(&text, UNPRINTED);
        }
    }
}
