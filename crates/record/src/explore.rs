//! Current memory placement as read by `numalab explore`: the facts, and those that could not be
//! read.

mod devices;
mod guests;
mod heap;
mod nodes;
mod process;
mod ranks;
mod room;
pub mod spread;

use numalab_topology::NodeSet;
use serde::{Deserialize, Serialize};

pub use devices::DeviceUse;
pub use guests::{GuestMemory, GuestView, GuestsView, Hypervisor, VcpuView};
pub use heap::{HeapNode, HeapSource, HeapView, HeapZone, XEN_PAGE_BYTES, XenDomain, XenHeap};
pub use nodes::{Counters, Migrations, NodeView, NodesView, TierMoves, ZoneView, fragmentation};
pub use process::{
    HugePageMode, MappingKind, MappingView, PageSizes, ProcessView, Sampled, ThreadView,
};
pub use ranks::{RankView, RanksView};
pub use room::{FULL, HugeRoom, NodeRoom, RoomByNode};
pub use spread::BytesByNode;

/// The current placement of memory: `{"explore": "nodes", ...}` in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "explore", rename_all = "kebab-case")]
pub enum View {
    /// The memory of each node.
    Nodes(NodesView),
    /// One process.
    Process(ProcessView),
    /// The guests on this host.
    Guests(GuestsView),
    /// The ranks on this host.
    Ranks(RanksView),
    /// A heap.
    Heap(HeapView),
}

impl View {
    /// Returns the facts that could not be read.
    pub fn unseen(&self) -> &[Unseen] {
        match self {
            Self::Nodes(view) => &view.unseen,
            Self::Process(view) => &view.unseen,
            Self::Guests(view) => &view.unseen,
            Self::Ranks(view) => &view.unseen,
            Self::Heap(_) => &[],
        }
    }
}

/// Something that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Unseen {
    /// The size or the free memory of these nodes.
    NodeMemory {
        /// The nodes without it.
        nodes: NodeSet,
    },
    /// The number of pageblocks that the kernel can move as a whole, because only root can read
    /// `/proc/pagetypeinfo`.
    Pageblocks,
    /// The nodes of single pages.
    PageSample {
        /// The system's error.
        reason: String,
    },
    /// Exact sums for each mapping: `numa_maps` is not readable, so they are estimates.
    SumsByMapping {
        /// The number of pages that they are estimated from.
        pages: u64,
    },
    /// The memory that each thread touches: NUMA balancing does not sample memory placed by a
    /// policy.
    TouchedByThread,
    /// The huge pages of each mapping: there are too many mappings.
    HugePagesByMapping {
        /// The largest number of mappings for which they are read.
        most_mappings: usize,
    },
    GuestOfAnotherUser {
        guest: String,
        /// The process id of the guest's QEMU.
        process: u32,
    },
    /// The ranks among other users' processes, whose environments cannot be read.
    EnvironmentsOfOthers {
        /// The number of processes.
        processes: usize,
    },
    /// The virtual CPU threads of a guest: QEMU was not asked to name them.
    VcpuThreads { guest: String },
    /// The nodes of the domains' memory: Xen sees the machine as one node.
    NodesOfDomains,
}
