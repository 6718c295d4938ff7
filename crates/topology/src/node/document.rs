//! The representation of a node in documents, in which unknown memory is null instead of 0.

use alloc::vec::Vec;

use super::{HugePagePool, MemorySideCache};
use crate::id::{NodeId, ProximityDomain};
use crate::id_set::CpuSet;

/// A node: cpus and memory that are near each other; either can be missing.
#[derive(serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Node {
    /// The operating system's number.
    id: NodeId,
    /// The firmware's proximity domain, if tables gave it.
    proximity_domain: Option<ProximityDomain>,
    /// True if the node is currently in use.
    online: bool,
    /// The node's cpus, including offline ones.
    cpus: CpuSet,
    /// Memory in bytes; 0 for a node without memory, null if it is unknown.
    memory_bytes: Option<u64>,
    /// Free memory in bytes, if the system reports it.
    free_bytes: Option<u64>,
    /// Huge page pools by page size.
    huge_pages: Vec<HugePagePool>,
    /// Caches in front of its memory, nearest to the cpus first.
    memory_side_caches: Vec<MemorySideCache>,
    /// True if its memory belongs to CXL devices and was brought online by the system.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    cxl: bool,
}

impl From<Node> for super::Node {
    fn from(node: Node) -> Self {
        Self {
            id: node.id,
            proximity_domain: node.proximity_domain,
            online: node.online,
            cpus: node.cpus,
            memory_bytes: node.memory_bytes.unwrap_or(0),
            memory_unknown: node.memory_bytes.is_none(),
            free_bytes: node.free_bytes,
            huge_pages: node.huge_pages,
            memory_side_caches: node.memory_side_caches,
            cxl: node.cxl,
        }
    }
}

impl From<super::Node> for Node {
    fn from(node: super::Node) -> Self {
        Self {
            id: node.id,
            proximity_domain: node.proximity_domain,
            online: node.online,
            cpus: node.cpus,
            memory_bytes: (!node.memory_unknown).then_some(node.memory_bytes),
            free_bytes: node.free_bytes,
            huge_pages: node.huge_pages,
            memory_side_caches: node.memory_side_caches,
            cxl: node.cxl,
        }
    }
}
