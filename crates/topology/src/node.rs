//! The node: cpus and memory that are near each other.

use alloc::vec::Vec;

use crate::id::{NodeId, ProximityDomain};
use crate::id_set::{CpuSet, NodeSet};

#[cfg(feature = "serde")]
mod document;

/// A node: cpus and memory that are near each other; either can be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(from = "document::Node", into = "document::Node"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Node {
    /// The operating system's number.
    pub id: NodeId,
    /// The firmware's proximity domain, if tables gave it.
    pub proximity_domain: Option<ProximityDomain>,
    /// True if the node is currently in use.
    pub online: bool,
    /// Cpus of the node, offline ones included. Nodes that are parts of one (`numa=fake`) list the
    /// same.
    pub cpus: CpuSet,
    /// Memory in bytes; 0 for a node without memory, and if it is unknown.
    pub memory_bytes: u64,
    /// True if the source does not report the node's memory, which may be none.
    pub memory_unknown: bool,
    /// Free memory in bytes, if the system reports it.
    pub free_bytes: Option<u64>,
    /// Huge page pools by page size.
    pub huge_pages: Vec<HugePagePool>,
    /// Caches in front of its memory, nearest to the cpus first.
    pub memory_side_caches: Vec<MemorySideCache>,
    /// True if its memory belongs to CXL devices and was brought online by the system.
    pub cxl: bool,
}

impl Node {
    /// Returns true if the node has memory, or if its source does not give its memory.
    #[must_use]
    pub fn may_have_memory(&self) -> bool {
        self.memory_bytes > 0 || self.memory_unknown
    }
}

/// The pool of huge pages of one size on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HugePagePool {
    /// Page size in bytes.
    pub page_bytes: u64,
    /// Number of pages in the pool.
    pub total: u64,
    /// Number of unused pages.
    pub free: u64,
}

/// A memory-side cache (ACPI 6.5, section 5.2.28.5).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemorySideCache {
    /// The level; 1 is nearest to memory.
    pub level: u8,
    /// Capacity in bytes.
    pub size_bytes: u64,
    /// Line size in bytes, if known.
    pub line_bytes: Option<u32>,
    /// Associativity: `Some(1)` is direct mapped, `None` unknown or complex.
    pub ways: Option<u32>,
}

/// A memory tier as Linux groups nodes by speed (`/sys/devices/virtual/memory_tiering`).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryTier {
    /// The tier's number; a smaller number is faster memory.
    pub id: u32,
    /// The nodes in the tier.
    pub nodes: NodeSet,
}
