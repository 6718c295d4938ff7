//! Where a worker and its memory really were.

use std::collections::BTreeMap;

use numalab_topology::{CpuId, CpuSet, NodeId};
use serde::{Deserialize, Serialize};

/// How the node of the memory was found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ProofMethod {
    /// `move_pages(2)` with no target nodes: the kernel's answer page by page.
    MovePages,
    /// The mapping's line in `/proc/self/numa_maps`.
    NumaMaps,
    /// The kernel tells nothing of single pages, and the machine has one node only.
    OnlyNode,
    /// The frame allocator's memory map, in a kernel of our own.
    Allocator,
}

/// Where one worker ran and where its memory lay, as read back from the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Placement {
    /// The cpu that the worker was pinned to.
    pub cpu: CpuId,
    /// The node of that cpu, if it has one.
    pub cpu_node: Option<NodeId>,
    /// The affinity that the kernel reports for the worker.
    pub affinity: CpuSet,
    /// The node that its memory was asked from.
    pub memory_node: NodeId,
    /// The first address of its buffer.
    pub address: u64,
    /// The buffer's length in bytes.
    pub buffer_bytes: u64,
    /// How the pages' nodes were found.
    pub method: ProofMethod,
    /// Pages looked at.
    pub pages_checked: u64,
    /// Pages found on each node.
    pub pages_per_node: BTreeMap<NodeId, u64>,
    /// Bytes of the buffer behind pages of each size in bytes.
    pub bytes_per_page_size: BTreeMap<u64, u64>,
}

impl Placement {
    /// The node that has most of its pages, the first of equal ones; the node asked where no page
    /// was found.
    #[must_use]
    pub fn main_node(&self) -> NodeId {
        let pages = self.pages_per_node.iter();
        let most = pages.max_by_key(|(node, pages)| (**pages, u32::MAX - node.0));
        most.map_or(self.memory_node, |(node, _)| *node)
    }
}
