//! The actual location of a worker and its memory.

use std::collections::BTreeMap;

use numalab_topology::{CpuId, CpuSet, NodeId};
use serde::{Deserialize, Serialize};

use crate::experiment::IsaName;

/// The method by which the node of the memory was determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProofMethod {
    /// `move_pages(2)` without target nodes: the kernel's answer for each page.
    MovePages,
    /// The mapping's line in `/proc/self/numa_maps`.
    NumaMaps,
    /// The kernel reports nothing about single pages, and the machine has one node only.
    OnlyNode,
    /// The frame allocator's memory map, in numalab's own kernel.
    Allocator,
}

/// The location of a worker and of its memory, as read back from the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Placement {
    /// The cpu that the worker was pinned to.
    pub cpu: CpuId,
    /// The node of that cpu, if it has one.
    pub cpu_node: Option<NodeId>,
    /// The affinity that the kernel reports for the worker.
    pub affinity: CpuSet,
    /// The node that its memory was requested from.
    pub memory_node: NodeId,
    /// The first address of its buffer.
    pub address: u64,
    /// The buffer's length in bytes.
    pub buffer_bytes: u64,
    /// The method that determined the pages' nodes.
    pub method: ProofMethod,
    /// The number of pages checked.
    pub pages_checked: u64,
    /// The number of pages found on each node.
    pub pages_per_node: BTreeMap<NodeId, u64>,
    /// Bytes of the buffer by the size of the pages behind them, in bytes.
    pub bytes_per_page_size: BTreeMap<u64, u64>,
    /// The instruction set that the worker streamed in, if its cell leaves the choice to a trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isa: Option<IsaName>,
}

impl Placement {
    /// Returns the node with most of its pages, the first if there are several; the requested node
    /// if no page was found.
    pub fn main_node(&self) -> NodeId {
        let pages = self.pages_per_node.iter();
        let most = pages.max_by_key(|(node, pages)| (**pages, u32::MAX - node.0));
        most.map_or(self.memory_node, |(node, _)| *node)
    }
}
