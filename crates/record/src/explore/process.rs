//! Where the memory of one process lies, beside where its threads run.

use std::collections::BTreeMap;

use numalab_topology::{CpuId, CpuSet, NodeId};
use serde::{Deserialize, Serialize};

use super::{BytesByNode, DeviceUse, Unseen};

/// A process: where its memory lies and where its threads run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessView {
    /// Its number.
    pub process: u32,
    /// Its command line, or its name in brackets for a kernel thread.
    pub command: String,
    /// Its threads, by number.
    pub threads: Vec<ThreadView>,
    /// Its mappings, by address.
    pub mappings: Vec<MappingView>,
    /// Bytes in memory by node.
    pub bytes_by_node: BytesByNode,
    /// Bytes by node that are its own: all but unmodified pages of files.
    pub own_bytes_by_node: BytesByNode,
    /// What pages its memory is made of.
    pub page_sizes: Option<PageSizes>,
    /// A sample of single pages, where the kernel tells them.
    pub sampled: Option<Sampled>,
    /// The share of what its threads touch that is remote, 0 to 1, each thread by its time
    /// on a cpu.
    pub remote_share: Option<f64>,
    /// The devices on PCI that it has open or mapped, by the files of `/dev` and `/sys`: what it
    /// reaches through sockets and file systems names none.
    pub devices: Vec<DeviceUse>,
    /// The cpus of each node.
    pub cpus_by_node: BTreeMap<NodeId, CpuSet>,
    /// The share of each node's memory that is free or can be reclaimed, 0 to 1.
    pub available_by_node: BTreeMap<NodeId, f64>,
    /// Whether the kernel balances memory between nodes; `None` for one that cannot.
    pub numa_balancing: Option<bool>,
    /// Who gets transparent huge pages; `None` on a kernel without them.
    pub transparent_huge_pages: Option<HugePageMode>,
    /// What is missing here and who could see it.
    pub unseen: Vec<Unseen>,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadView {
    /// Its number.
    pub thread: u32,
    /// Its name.
    pub name: String,
    /// Its state as `ps` letters it: R runs, S sleeps, D waits for a device.
    pub state: char,
    /// The cpu that it runs on, or ran on last.
    pub cpu: CpuId,
    /// The node of that cpu.
    pub node: Option<NodeId>,
    /// The cpus that it may run on.
    pub allowed: CpuSet,
    /// Its time on cpus so far, in ticks of the kernel (100 a second).
    pub cpu_ticks: u64,
    /// Pages that it was seen to touch, by node: the samples of NUMA balancing (which
    /// decay), where that is on and sees most of the memory. A count, not bytes.
    pub touched_pages: BytesByNode,
    /// The share of what it touches that is remote, 0 to 1: by `touched_pages`, or else of
    /// the memory of the whole process.
    pub remote_share: Option<f64>,
}

/// What a mapping is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MappingKind {
    /// The heap (`brk`).
    Heap,
    /// The stack of the first thread.
    Stack,
    /// Anonymous memory.
    Anonymous,
    /// Memory shared with others: tmpfs, memfd, System V.
    Shared,
    /// Pages of a reserved pool.
    HugePool,
    /// A file.
    File,
}

/// One mapping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MappingView {
    /// Its first address.
    pub start: u64,
    /// Its length in bytes, where `maps` tells it.
    pub size_bytes: Option<u64>,
    /// Its policy in the kernel's words: `default`, `bind:0`, `interleave:0-3`.
    pub policy: String,
    /// What it is made of.
    pub kind: MappingKind,
    /// The file behind it.
    pub file: Option<String>,
    /// Bytes in memory by node.
    pub bytes_by_node: BytesByNode,
    /// Of these, bytes that are the process's own: all but unmodified pages of files.
    pub own: bool,
    /// The size of its pages in bytes, transparent huge pages apart.
    pub page_bytes: u64,
    /// Bytes in transparent huge pages, where `smaps` was read.
    pub transparent_huge_bytes: Option<u64>,
}

/// What pages memory is made of, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PageSizes {
    /// In memory, reserved huge pages apart.
    pub resident: u64,
    /// Of these: anonymous.
    pub anonymous: u64,
    /// Of these: in transparent huge pages, anonymous or not.
    pub transparent_huge: u64,
    /// In reserved huge pages.
    pub reserved_huge: u64,
    /// Swapped out.
    pub swapped: u64,
}

impl std::ops::AddAssign for PageSizes {
    /// Sums saturate.
    fn add_assign(&mut self, other: Self) {
        self.resident = self.resident.saturating_add(other.resident);
        self.anonymous = self.anonymous.saturating_add(other.anonymous);
        self.transparent_huge = self.transparent_huge.saturating_add(other.transparent_huge);
        self.reserved_huge = self.reserved_huge.saturating_add(other.reserved_huge);
        self.swapped = self.swapped.saturating_add(other.swapped);
    }
}

/// Who gets transparent huge pages (`/sys/kernel/mm/transparent_hugepage/enabled`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum HugePageMode {
    /// All.
    Always,
    /// Programs that ask.
    Madvise,
    /// Nobody.
    Never,
}

/// What a sample of single pages showed, beside the kernel's own sums.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sampled {
    /// Pages that were asked for.
    pub pages: u64,
    /// Pages that were in memory, by node.
    pub pages_by_node: BytesByNode,
}
