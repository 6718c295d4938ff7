//! One node.

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
    /// The firmware's proximity domain, where tables gave it.
    pub proximity_domain: Option<ProximityDomain>,
    /// Whether the node is in use now.
    pub online: bool,
    /// Its cpus, offline ones included. Nodes that are parts of one (`numa=fake`) list the same.
    pub cpus: CpuSet,
    /// Memory in bytes; 0 for a node without memory, and where it is unknown.
    pub memory_bytes: u64,
    /// Whether the source does not say how much memory it has, if any.
    pub memory_unknown: bool,
    /// Free memory in bytes, where the system told it.
    pub free_bytes: Option<u64>,
    /// Huge page pools by page size.
    pub huge_pages: Vec<HugePagePool>,
    /// Caches in front of its memory, nearest to the cpus first.
    pub memory_side_caches: Vec<MemorySideCache>,
    /// Whether its memory is that of CXL devices, which the system brought online.
    pub cxl: bool,
}

impl Node {
    /// Whether it has memory, or may have some that its source does not tell.
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
    /// Pages in the pool.
    pub total: u64,
    /// Pages nobody uses.
    pub free: u64,
}

/// A memory-side cache (ACPI 6.5, section 5.2.28.5).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemorySideCache {
    /// The level, 1 nearest to memory.
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
    /// The tier's number; a smaller one is faster memory.
    pub id: u32,
    /// The nodes in it.
    pub nodes: NodeSet,
}
