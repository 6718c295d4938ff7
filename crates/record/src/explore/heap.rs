//! Heaps dumped by `numalab-frames` or by Xen.

use std::collections::BTreeMap;

use numalab_topology::{CpuId, NodeId};
use serde::{Deserialize, Serialize};

/// An allocator's memory by node, from a dump.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HeapView {
    /// The allocator that dumped it.
    pub source: HeapSource,
    pub nodes: Vec<HeapNode>,
    /// The rest of Xen's output, if Xen dumped the heap.
    pub xen: Option<XenHeap>,
    /// A picture of a dump of `numalab-frames`: one character per 2 MiB.
    pub picture: Option<String>,
}

/// The allocator that dumped a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HeapSource {
    /// `numalab-frames`.
    Frames,
    /// Xen's debug keys.
    Xen,
}

/// A node of a heap, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HeapNode {
    pub node: NodeId,
    /// Bytes that the allocator manages.
    pub managed_bytes: u64,
    pub free_bytes: u64,
    /// Free bytes in entirely free 2 MiB blocks, if known.
    pub free_huge_bytes: Option<u64>,
    /// Free bytes in per-cpu caches.
    pub cached_bytes: u64,
    /// Bytes taken out of use.
    pub offline_bytes: u64,
    /// Free bytes by zone.
    pub zones: Vec<HeapZone>,
}

/// A zone of a node, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HeapZone {
    /// The zone's name.
    pub name: String,
    pub free_bytes: u64,
}

/// Xen's further output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct XenHeap {
    /// The node of each cpu.
    pub cpus: BTreeMap<CpuId, NodeId>,
    pub domains: Vec<XenDomain>,
    /// The position of this list of domains in the console log, from 1; 0 if there is none.
    pub list: usize,
    /// The number of lists in the log.
    pub lists: usize,
}

/// The location of a domain's memory, in pages of [`XEN_PAGE_BYTES`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct XenDomain {
    /// The domain's number.
    pub domain: u32,
    /// The number of the domain's pages.
    pub total_pages: u64,
    /// The domain's pages by node.
    pub pages_by_node: BTreeMap<NodeId, u64>,
}

/// The size in bytes of a Xen page on x86.
pub const XEN_PAGE_BYTES: u64 = 4096;
