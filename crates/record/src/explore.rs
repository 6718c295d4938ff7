//! Where memory lies now, as `numalab explore` reads it: facts, and what could not be seen.

mod devices;
mod guests;
mod heap;
mod nodes;
mod process;
mod ranks;
pub mod spread;

use serde::{Deserialize, Serialize};

pub use devices::DeviceUse;
pub use guests::{GuestMemory, GuestView, GuestsView, Hypervisor, VcpuView};
pub use heap::{HeapNode, HeapSource, HeapView, HeapZone, XEN_PAGE_BYTES, XenDomain, XenHeap};
pub use nodes::{Counters, Migrations, NodeView, NodesView, TierMoves, ZoneView, fragmentation};
pub use process::{
    HugePageMode, MappingKind, MappingView, PageSizes, ProcessView, Sampled, ThreadView,
};
pub use ranks::{RankView, RanksView};
pub use spread::BytesByNode;

/// Where memory lies now: `{"explore": "nodes", ...}` in JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "explore", rename_all = "kebab-case")]
pub enum View {
    /// By node.
    Nodes(NodesView),
    /// Of a process.
    Process(ProcessView),
    /// Of guests.
    Guests(GuestsView),
    /// Of ranks.
    Ranks(RanksView),
    /// In a heap.
    Heap(HeapView),
}

impl View {
    /// What could not be seen.
    #[must_use]
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

/// Something that could not be seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Unseen {
    /// Which pageblocks the kernel can move together: root reads `/proc/pagetypeinfo`.
    Pageblocks,
    /// No single pages were asked for their node.
    PageSample {
        /// What the system said.
        reason: String,
    },
    /// There is no `numa_maps`: sums are estimates.
    SumsByMapping {
        /// Pages that they are estimated from.
        pages: u64,
    },
    /// What each thread touches: NUMA balancing samples no memory that a policy places.
    TouchedByThread,
    /// Huge pages of each mapping: there are too many mappings to ask for all.
    HugePagesByMapping {
        /// Beyond this number of mappings they are not read.
        most_mappings: usize,
    },
    /// A guest of another user.
    GuestOfAnotherUser {
        /// The guest.
        guest: String,
        /// Its process.
        process: u32,
    },
    /// Which processes of other users are ranks: their environment is theirs.
    EnvironmentsOfOthers {
        /// How many processes.
        processes: usize,
    },
    /// Which threads of a guest are virtual cpus: QEMU was not told to name them.
    VcpuThreads {
        /// The guest.
        guest: String,
    },
    /// The nodes of domains' memory: Xen takes the machine for one node.
    NodesOfDomains,
}
