//! What a test of a machine's nodes found.

use numalab_topology::{CpuId, CpuSet, Machine, NodeId};
use serde::{Deserialize, Serialize};

use crate::run::Environment;

/// A test of what numalab does on a machine of several nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SelfTest {
    /// Facts about the system.
    pub environment: Environment,
    /// The machine.
    pub machine: Machine,
    /// The checks, in the order in which they were made.
    pub checks: Vec<Checked>,
}

/// A check and how it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checked {
    /// What was checked.
    pub check: Check,
    /// How it ended.
    pub outcome: CheckOutcome,
    /// What was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<CheckFound>,
    /// Why nothing was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// A thread runs on the cpu that it is pinned to, and that on its node.
    Pins,
    /// Memory bound to a node lies there.
    Bound,
    /// Memory without a policy lies on the node of the cpu that touches it first.
    FirstTouch,
    /// Memory that lies elsewhere is not taken for proven.
    Proof,
    /// Transparent huge pages on each node.
    TransparentHugePages,
    /// Huge pages out of each node's reserved pool.
    ReservedHugePages,
    /// NUMA balancing moves pages to the node that uses them.
    Balancing,
    /// Memory at a larger distance is not faster.
    Matrix,
    /// A guest's nodes lie on this machine's nodes.
    Guest,
    /// Every setting that was changed is as before.
    Settings,
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CheckOutcome {
    /// It is as it should be.
    Passed,
    /// It is not.
    Failed,
    /// The machine lacks what the check needs.
    NotChecked,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "of", rename_all = "kebab-case")]
pub enum CheckFound {
    /// Threads, by the cpu that they were pinned to.
    Pins {
        /// On that cpu, and on the node that the topology names.
        right: CpuSet,
        /// On a node that the topology does not name.
        wrong: CpuSet,
    },
    /// Pages that should lie on a node.
    Pages {
        /// Node by node.
        nodes: Vec<NodePages>,
    },
    /// Memory of one node that was claimed to lie on another.
    Claim {
        /// Where it lies.
        node: NodeId,
        /// Where it was claimed to lie.
        claimed: NodeId,
        /// Pages looked at.
        pages: u64,
        /// Pages found not to lie there.
        refused: u64,
    },
    /// A thread that moved away from its memory.
    Balancing {
        /// The node that it left.
        from: NodeId,
        /// The node that it went to.
        to: NodeId,
        /// Pages that followed without balancing, in percent.
        off_percent: f64,
        /// Pages that followed with it, in percent.
        on_percent: f64,
        /// A load after the move, with balancing, in nanoseconds.
        begin_ns: f64,
        /// A load at the end.
        end_ns: f64,
    },
    /// Latency between nodes.
    Matrix {
        /// Pair by pair.
        pairs: Vec<NodeLatency>,
    },
    /// The nodes of a guest.
    Guest {
        /// What ran it.
        accelerator: String,
        /// Node by node.
        nodes: Vec<GuestNode>,
    },
    /// Settings that were changed.
    Settings {
        /// Each with its value before and after the test.
        settings: Vec<PutBack>,
    },
}

/// Pages that should lie on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodePages {
    /// The node.
    pub node: NodeId,
    /// Size of a page in bytes.
    pub page_bytes: u64,
    /// Pages looked at.
    pub pages: u64,
    /// Pages that lie on the node.
    pub on_node: u64,
}

/// Latency from a node's cpus to a node's memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeLatency {
    /// The node of the cpu.
    pub from: NodeId,
    /// The node of the memory.
    pub to: NodeId,
    /// A load, in nanoseconds.
    pub latency_ns: f64,
    /// The distance that the firmware gives.
    pub distance: Option<u8>,
}

/// A node of a guest, where it should lie and where it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuestNode {
    /// This machine's node.
    pub host: NodeId,
    /// Where its virtual cpu runs.
    pub runs_on: Option<CpuId>,
    /// Bytes of its memory on that node.
    pub there_bytes: u64,
    /// Bytes of its memory on other nodes.
    pub elsewhere_bytes: u64,
}

/// A setting that was changed and put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PutBack {
    /// The setting.
    pub name: String,
    /// Its value before the test.
    pub before: String,
    /// Its value after it.
    pub after: String,
}
