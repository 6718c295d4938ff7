//! Problems of current memory placement, and their remedies, as values.

mod expect;
mod guests;
mod heap;
mod nodes;
mod process;
mod ranks;
mod room;

pub use expect::{Expectation, Unmet, unmet};
pub use guests::GuestProblem;
pub use heap::HeapProblem;
pub use nodes::{NodesProblem, UnusedPool};
pub use process::{ProcessProblem, Touched};
pub use ranks::RanksProblem;

use numalab_record::explore::View;
use numalab_topology::{CpuSet, NodeId, NodeSet};
use serde::Serialize;

use crate::Finding;

/// The current memory placement, and its problems.
#[derive(Clone, Debug, PartialEq)]
pub struct Explored {
    /// The placement as observed.
    pub view: View,
    pub findings: Vec<ExploreFinding>,
}

impl Explored {
    /// Applies the rules to a view.
    pub fn of(view: View) -> Self {
        let findings = match &view {
            View::Nodes(view) => nodes::findings(view),
            View::Process(view) => process::findings(view),
            View::Guests(view) => guests::findings(view),
            View::Ranks(view) => ranks::findings(view),
            View::Heap(view) => heap::findings(view),
        };
        Self { view, findings }
    }
}

/// A finding about memory placement, with the places that show it.
pub type ExploreFinding = Finding<JudgedProblem, ProblemPlace>;

/// A problem with its severity and remedy.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct JudgedProblem {
    /// The severity of the problem.
    pub weight: Weight,
    #[serde(flatten)]
    pub problem: Problem,
    /// The remedy, if there is one.
    #[serde(skip)]
    pub remedy: Option<Remedy>,
    /// The reason why the usual remedy does not apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<Obstacle>,
}

impl JudgedProblem {
    fn wrong(problem: Problem, remedy: Remedy) -> Self {
        Self::wrong_if(problem, Ok(remedy))
    }

    fn wrong_if(problem: Problem, remedy: Result<Remedy, Obstacle>) -> Self {
        Self { weight: Weight::Wrong, ..Self::note_if(problem, remedy) }
    }

    fn note(problem: Problem, remedy: impl Into<Option<Remedy>>) -> Self {
        Self { weight: Weight::Note, problem, remedy: remedy.into(), obstacle: None }
    }

    fn note_if(problem: Problem, remedy: Result<Remedy, Obstacle>) -> Self {
        match remedy {
            Ok(remedy) => Self::note(problem, remedy),
            Err(obstacle) => Self { obstacle: Some(obstacle), ..Self::note(problem, None) },
        }
    }
}

/// The reason why the usual remedy does not apply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Obstacle {
    /// Memory does not fit where it should be.
    NoRoom {
        /// The nodes where it should be.
        nodes: NodeSet,
        /// The memory, in bytes.
        needed_bytes: u64,
        /// The memory that the nodes can take, in bytes.
        left_bytes: u64,
    },
    /// The kernel cannot make such huge pages from other memory, and too few are free on the nodes
    /// that should hold them.
    FewHugePages {
        /// The node where it should be.
        node: NodeId,
        /// The size of a page in bytes.
        page_bytes: u64,
        /// The pages needed.
        needed: u64,
        /// The node's free pages.
        free: u64,
    },
    /// The nodes that should hold the memory have none themselves.
    NoMemory { nodes: NodeSet },
    /// The memory is shared with other processes, and has a separate remedy.
    OfSegment {
        /// The name of the shared memory.
        segment: String,
    },
    /// The node has fewer cpus than would run there.
    FewCpus {
        node: NodeId,
        /// The node's cpus.
        cpus: usize,
        /// The vCPUs that would run on the node.
        vcpus: usize,
    },
    /// The node has little page cache to reclaim.
    LittleCache {
        node: NodeId,
        /// Page cache and reclaimable slabs of the node, in bytes.
        cache_bytes: u64,
    },
    /// The only memory with room is on a node without cpus: a device's, or a slower tier.
    WithoutCpus { node: NodeId },
}

/// The severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// Memory is in the wrong place, or soon will be.
    Wrong,
    /// Worth knowing, but it may be intended.
    Note,
}

/// A place that shows a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProblemPlace {
    /// A node.
    Node(NodeId),
    /// A thread.
    Thread(u32),
    /// A mapping, by its start address.
    Mapping(u64),
    /// A vCPU of the guest.
    Vcpu(u32),
    /// A domain of Xen.
    Domain(u32),
}

/// An actual or possible problem of memory placement.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Problem {
    /// A problem of the nodes.
    Nodes(NodesProblem),
    /// A problem of a process.
    Process(ProcessProblem),
    /// A problem of a guest.
    Guest(GuestProblem),
    /// A problem of ranks.
    Ranks(RanksProblem),
    /// A problem of a heap.
    Heap(HeapProblem),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Start new programs on, or move running ones to, a node with free memory.
    UseOtherNode {
        full: NodeId,
        /// The node with free memory.
        roomy: NodeId,
        /// True if most of the full node is shared memory, which does not move with a program.
        is_shared: bool,
    },
    /// Reserve huge pages on a node.
    ReservePages {
        node: NodeId,
        page_bytes: u64,
        /// The number of pages to reserve.
        pages: u64,
    },
    /// Interleave a segment of shared memory over nodes before it is touched.
    InterleaveSegment {
        nodes: NodeSet,
        segment: String,
        /// The file's size in memory.
        bytes: u64,
    },
    /// Have a file read into the page cache again, on these nodes.
    PlaceFile {
        /// The nodes to read it to; pages are interleaved over several.
        nodes: NodeSet,
        file: String,
        command: String,
    },
    /// Reclaim page cache on the node before allocating elsewhere.
    ReclaimOnNode,
    /// Compact the free memory of a node.
    Compact {
        node: NodeId,
    },
    /// Migrate a process's memory to another node.
    MovePages {
        process: u32,
        /// The nodes that hold the memory.
        from: NodeSet,
        /// The target node; `None` for any node close to the cpus.
        to: Option<NodeId>,
    },
    /// Move a process or a thread to the node of its memory.
    MoveThreads {
        /// The process or thread id.
        number: u32,
        /// True for all threads of the process.
        all: bool,
        cpus: CpuSet,
    },
    /// Interleave memory over the nodes where threads run.
    Interleave {
        nodes: NodeSet,
        command: String,
        /// True if NUMA balancing, which would move memory as well, is off.
        balancing_is_off: bool,
    },
    /// Start the program on the node of a device.
    BindNear {
        device: String,
        command: String,
    },
    /// Start the program with huge pages requested.
    AskForHugePages {
        command: String,
    },
    AllowHugePages,
    LookAtNodes,
    LookAtProcess {
        process: u32,
    },
    /// Give each thread of each rank a separate cpu.
    SpreadThreads,
    /// Pin the vCPUs of a QEMU guest.
    PinVcpus {
        /// The path of the control socket.
        socket: String,
        /// The cpus for each vCPU.
        map: Vec<(u32, CpuSet)>,
    },
    /// Give a Xen guest its cpus as a list, and create it again.
    ListCpus {
        guest: String,
        cpus: CpuSet,
    },
    /// Pin the vCPUs of a Xen guest to a node.
    PinDomain {
        guest: String,
        node: NodeId,
        /// True if they are pinned elsewhere now, so that creating the guest again helps as well.
        is_pinned: bool,
    },
    /// Create a domain again on one node.
    RecreateDomain {
        domain: u32,
        /// The node to create it on.
        node: NodeId,
    },
}
