//! Ranges of memory.

use numalab_topology::{MemoryKind, MemoryRange, NodeId};

/// Returns an ordinary range of a node.
pub fn range(base: u64, length_bytes: u64, node: u32) -> MemoryRange {
    MemoryRange {
        base,
        length_bytes,
        node: NodeId(node),
        hot_pluggable: false,
        kind: MemoryKind::Ordinary,
    }
}
