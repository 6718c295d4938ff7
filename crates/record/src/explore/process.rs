//! The memory of a process, and its threads.

use std::collections::BTreeMap;

use numalab_topology::{CpuId, CpuSet, NodeId};
use serde::{Deserialize, Serialize};

use super::{BytesByNode, DeviceUse, HugeRoom, RoomByNode, Unseen};

/// A process: where its memory is and where its threads run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ProcessView {
    /// The process id.
    pub process: u32,
    /// The command line, or the name in brackets for a kernel thread.
    pub command: String,
    /// The process's threads, by number.
    pub threads: Vec<ThreadView>,
    /// The process's mappings, by address.
    pub mappings: Vec<MappingView>,
    /// Resident bytes by node.
    pub bytes_by_node: BytesByNode,
    /// Resident bytes of the process itself by node: all except unmodified file pages.
    pub own_bytes_by_node: BytesByNode,
    /// The page sizes of its memory.
    pub page_sizes: Option<PageSizes>,
    /// A sample of single pages, if the kernel reports their nodes.
    pub sampled: Option<Sampled>,
    /// The remote share of the memory that its threads touch, from 0 to 1, each thread weighted by
    /// its cpu time.
    pub remote_share: Option<f64>,
    /// The PCI devices that it has opened or mapped, found by their files in `/dev` and `/sys`;
    /// those it reaches through sockets and file systems are not listed.
    pub devices: Vec<DeviceUse>,
    /// The cpus of each node.
    pub cpus_by_node: BTreeMap<NodeId, CpuSet>,
    /// The memory of each node of the machine; empty if it is unknown.
    #[serde(default)]
    pub room_by_node: RoomByNode,
    /// The pools of reserved huge pages on each node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub huge_rooms: Vec<HugeRoom>,
    /// True if the kernel balances memory between nodes; `None` if it cannot.
    pub numa_balancing: Option<bool>,
    /// The kernel's mode for transparent huge pages; `None` on a kernel without them.
    pub transparent_huge_pages: Option<HugePageMode>,
    /// The facts that could not be read, with the user who could read them.
    pub unseen: Vec<Unseen>,
}

/// A thread: where it runs, and how much of its memory is remote.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ThreadView {
    /// The thread id.
    pub thread: u32,
    /// The thread's name.
    pub name: String,
    /// The thread's state as in `ps`: R runs, S sleeps, D waits for a device.
    pub state: char,
    /// The cpu that it is running on or last ran on.
    pub cpu: CpuId,
    /// The node of that cpu.
    pub node: Option<NodeId>,
    /// The cpus that it may run on.
    pub allowed: CpuSet,
    /// The thread's cpu time so far, in kernel ticks (100 per second).
    pub cpu_ticks: u64,
    /// The pages it was seen to touch, by node: samples of NUMA balancing (which decay), if that is
    /// on and sees most of the memory. A count, not bytes.
    pub touched_pages: BytesByNode,
    /// The remote share of the memory that it touches, from 0 to 1: by `touched_pages`, or else of
    /// the whole process's memory.
    pub remote_share: Option<f64>,
}

/// The kind of memory behind a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MappingKind {
    /// The heap (`brk`).
    Heap,
    /// The stack of the first thread.
    Stack,
    /// Anonymous memory.
    Anonymous,
    /// Memory shared with other processes: tmpfs, memfd, System V.
    Shared,
    /// Pages from a reserved pool.
    HugePool,
    /// A file.
    File,
}

/// One mapping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MappingView {
    /// The mapping's first address.
    pub start: u64,
    /// The mapping's length in bytes, if `maps` gives it.
    pub size_bytes: Option<u64>,
    /// The memory policy as the kernel writes it: `default`, `bind:0`, `interleave:0-3`.
    pub policy: String,
    /// The kind of memory behind the mapping.
    pub kind: MappingKind,
    /// The file that is mapped, if any.
    pub file: Option<String>,
    /// Resident bytes by node.
    pub bytes_by_node: BytesByNode,
    /// True if the resident bytes are the process's own: all except unmodified file pages.
    pub own: bool,
    /// The size of its pages in bytes, transparent huge pages aside.
    pub page_bytes: u64,
    /// Bytes in transparent huge pages, if `smaps` was read.
    pub transparent_huge_bytes: Option<u64>,
}

/// The page sizes of memory, in bytes per kind.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct PageSizes {
    /// Resident bytes, excluding reserved huge pages.
    pub resident: u64,
    /// Resident bytes that are anonymous.
    pub anonymous: u64,
    /// Resident bytes in transparent huge pages, anonymous or not.
    pub transparent_huge: u64,
    /// Bytes in reserved huge pages.
    pub reserved_huge: u64,
    /// Bytes swapped out.
    pub swapped: u64,
}

impl std::ops::AddAssign for PageSizes {
    /// Adds the sizes of each kind, without overflow.
    fn add_assign(&mut self, other: Self) {
        self.resident = self.resident.saturating_add(other.resident);
        self.anonymous = self.anonymous.saturating_add(other.anonymous);
        self.transparent_huge = self.transparent_huge.saturating_add(other.transparent_huge);
        self.reserved_huge = self.reserved_huge.saturating_add(other.reserved_huge);
        self.swapped = self.swapped.saturating_add(other.swapped);
    }
}

/// The mode of transparent huge pages (`/sys/kernel/mm/transparent_hugepage/enabled`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HugePageMode {
    /// Huge pages for all programs.
    Always,
    /// Huge pages for programs that request them.
    Madvise,
    /// Huge pages for no program.
    Never,
}

/// The nodes of a sample of single pages, as a check on the kernel's sums.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Sampled {
    /// The number of pages queried.
    pub pages: u64,
    /// Resident pages by node.
    pub pages_by_node: BytesByNode,
}
