//! What is wrong with where memory lies now, as values, and what mends it.

mod expect;
mod guests;
mod heap;
mod nodes;
mod process;
mod ranks;

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

/// Where memory lies now, and what is wrong with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Explored {
    /// What was seen.
    pub view: View,
    /// What is wrong.
    pub findings: Vec<ExploreFinding>,
}

impl Explored {
    /// What the rules find in a view.
    #[must_use]
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

/// Something found about where memory lies; the evidence is what shows it.
pub type ExploreFinding = Finding<Advice, Place>;

/// What was found, how bad it is, and what mends it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advice {
    /// How bad it is.
    pub weight: Weight,
    /// What was found.
    #[serde(flatten)]
    pub problem: Problem,
    /// What mends it, where something does.
    #[serde(skip)]
    pub remedy: Option<Remedy>,
}

impl Advice {
    fn wrong(problem: Problem, remedy: Remedy) -> Self {
        Self { weight: Weight::Wrong, problem, remedy: Some(remedy) }
    }

    fn note(problem: Problem, remedy: impl Into<Option<Remedy>>) -> Self {
        Self { weight: Weight::Note, problem, remedy: remedy.into() }
    }
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// Memory is where it should not be, or will be.
    Wrong,
    /// Worth knowing; it may be meant so.
    Note,
}

/// What shows a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// A node.
    Node(NodeId),
    /// A thread.
    Thread(u32),
    /// A mapping, by its first address.
    Mapping(u64),
    /// A virtual cpu of the guest.
    Vcpu(u32),
    /// A domain of Xen.
    Domain(u32),
}

/// Something that is wrong with where memory lies, or may be.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Problem {
    /// Of the nodes.
    Nodes(NodesProblem),
    /// Of a process.
    Process(ProcessProblem),
    /// Of a guest.
    Guest(GuestProblem),
    /// Of ranks.
    Ranks(RanksProblem),
    /// Of a heap.
    Heap(HeapProblem),
}

/// What mends a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Memory of what is started next, or of what runs, goes to a node with room.
    UseOtherNode {
        /// The full node.
        full: NodeId,
        /// The one with room.
        roomy: NodeId,
    },
    /// So many huge pages are reserved on a node.
    ReservePages {
        /// The node.
        node: NodeId,
        /// The size of a page in bytes.
        page_bytes: u64,
        /// How many.
        pages: u64,
    },
    /// One piece of shared memory is spread over nodes before it is touched.
    InterleaveSegment {
        /// These nodes.
        nodes: NodeSet,
        /// What it is called.
        segment: String,
    },
    /// Page cache of a node makes room before memory goes elsewhere.
    ReclaimOnNode,
    /// Free memory of a node is put together.
    Compact {
        /// The node.
        node: NodeId,
    },
    /// A process's memory goes to another node.
    MovePages {
        /// The process.
        process: u32,
        /// The nodes where it is.
        from: NodeSet,
        /// Where it is to go; `None` for any node near the cpus.
        to: Option<NodeId>,
    },
    /// A process or a thread goes where its memory is.
    MoveThreads {
        /// Their number: of a process, or of one thread.
        number: u32,
        /// All threads of the process.
        all: bool,
        /// The cpus.
        cpus: CpuSet,
    },
    /// Memory is spread over the nodes where threads run.
    Interleave {
        /// These nodes.
        nodes: NodeSet,
        /// The program.
        command: String,
        /// Whether NUMA balancing is off, which would move memory as well.
        balancing_is_off: bool,
    },
    /// The program is started on the node of a device.
    BindNear {
        /// The device.
        device: String,
        /// The program.
        command: String,
    },
    /// The program is started so that it asks for huge pages.
    AskForHugePages {
        /// The program.
        command: String,
    },
    /// Transparent huge pages are allowed.
    AllowHugePages,
    /// It is worth a look at the nodes.
    LookAtNodes,
    /// It is worth a look at a process.
    LookAtProcess {
        /// The process.
        process: u32,
    },
    /// Each thread of each rank gets a cpu of its own.
    SpreadThreads,
    /// Virtual cpus of a guest of QEMU are pinned.
    PinVcpus {
        /// The control socket.
        socket: String,
        /// The cpus of each virtual cpu.
        map: Vec<(u32, CpuSet)>,
    },
    /// A guest of Xen gets its cpus as a list, and is created anew.
    ListCpus {
        /// The guest.
        guest: String,
        /// The cpus.
        cpus: CpuSet,
    },
    /// The virtual cpus of a guest of Xen are pinned to a node.
    PinDomain {
        /// The guest.
        guest: String,
        /// The node.
        node: NodeId,
        /// Whether they are pinned elsewhere now, so that creating it anew mends it as well.
        is_pinned: bool,
    },
    /// A domain is created anew on one node.
    RecreateDomain {
        /// The domain.
        domain: u32,
        /// The node.
        node: NodeId,
    },
}
