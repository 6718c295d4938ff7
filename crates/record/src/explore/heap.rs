//! Heaps that were written down elsewhere: by `numalab-frames`, or by Xen.

use std::collections::BTreeMap;

use numalab_topology::{CpuId, NodeId};
use serde::{Deserialize, Serialize};

/// A heap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeapView {
    /// Who wrote it.
    pub source: HeapSource,
    /// The nodes.
    pub nodes: Vec<HeapNode>,
    /// What Xen said, if it was Xen.
    pub xen: Option<XenHeap>,
    /// A picture of a dump of `numalab-frames`: a character for each 2 MiB.
    pub picture: Option<String>,
}

/// Who wrote a heap down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum HeapSource {
    /// `numalab-frames`.
    Frames,
    /// Xen's debug keys.
    Xen,
}

/// A node of a heap, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeapNode {
    /// The node.
    pub node: NodeId,
    /// What the allocator manages there.
    pub managed_bytes: u64,
    /// Free.
    pub free_bytes: u64,
    /// Of these, in wholly free blocks of 2 MiB, where known.
    pub free_huge_bytes: Option<u64>,
    /// Of these, in the caches of cpus.
    pub cached_bytes: u64,
    /// Taken out of use.
    pub offline_bytes: u64,
    /// Free bytes by zone.
    pub zones: Vec<HeapZone>,
}

/// A zone of a node, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeapZone {
    /// Its name.
    pub name: String,
    /// Free.
    pub free_bytes: u64,
}

/// What Xen says beyond its nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct XenHeap {
    /// The node of each cpu.
    pub cpus: BTreeMap<CpuId, NodeId>,
    /// The domains.
    pub domains: Vec<XenDomain>,
    /// Which list of domains of the console this is, from 1; 0 without any.
    pub list: usize,
    /// How many lists there are.
    pub lists: usize,
}

/// Where a domain's memory is, in pages of [`XEN_PAGE_BYTES`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct XenDomain {
    /// Its number.
    pub domain: u32,
    /// Its pages.
    pub total_pages: u64,
    /// Its pages by node.
    pub pages_by_node: BTreeMap<NodeId, u64>,
}

/// Bytes of a page of Xen on x86.
pub const XEN_PAGE_BYTES: u64 = 4096;
