//! The result of a self-test on a machine's nodes.

use numalab_topology::{CpuId, CpuSet, Machine, NodeId};
use serde::{Deserialize, Serialize};

use crate::run::Environment;

/// A self-test of numalab on a machine with several nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SelfTest {
    /// Facts about the system.
    pub environment: Environment,
    pub machine: Machine,
    /// The checks, in the order in which they were made.
    pub checks: Vec<Checked>,
}

/// A check with its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Checked {
    pub check: Check,
    /// The outcome of the check.
    pub outcome: CheckOutcome,
    /// The finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<CheckFound>,
    /// The reason it was not checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A check of the self-test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// A thread runs on the cpu that it is pinned to, and that cpu is on the node that the topology
    /// names.
    Pins,
    /// Memory bound to a node is on that node.
    Bound,
    /// Memory without a policy is on the node of the cpu that touches it first.
    FirstTouch,
    /// Memory on another node is not accepted as proven.
    Proof,
    /// Transparent huge pages on each node.
    TransparentHugePages,
    /// Huge pages from each node's reserved pool.
    ReservedHugePages,
    /// NUMA balancing moves pages to the node that uses them.
    Balancing,
    /// Memory at a greater distance is not faster.
    Matrix,
    /// A guest's nodes are on this machine's nodes.
    Guest,
    /// Every changed setting has its old value.
    Settings,
}

/// The judgement of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckOutcome {
    /// The check passed.
    Passed,
    /// The check failed.
    Failed,
    /// The machine lacks what the check needs.
    NotChecked,
}

/// The finding of a check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "of", rename_all = "kebab-case")]
pub enum CheckFound {
    /// Threads, by the cpu that they were pinned to.
    Pins {
        /// The cpus whose threads ran on them, and on the node that the topology names.
        right: CpuSet,
        /// The cpus whose threads ran on a node that the topology does not name.
        wrong: CpuSet,
    },
    /// Pages that should be on a node.
    Pages {
        /// The pages of each node.
        nodes: Vec<NodePages>,
    },
    /// A false claim that memory of one node is on another.
    Claim {
        /// The actual node.
        node: NodeId,
        /// The claimed node.
        claimed: NodeId,
        /// The number of pages checked.
        pages: u64,
        /// The number of pages found not to be on the claimed node.
        refused: u64,
    },
    /// A thread that moved away from its memory.
    Balancing {
        /// The node that the thread left.
        from: NodeId,
        /// The node that the thread moved to.
        to: NodeId,
        /// Pages that followed with balancing off, in percent.
        off_percent: f64,
        /// Pages that followed with balancing on, in percent.
        on_percent: f64,
        /// The load latency after the move, with balancing on, in nanoseconds.
        begin_ns: f64,
        /// The load latency at the end, in nanoseconds.
        end_ns: f64,
    },
    /// Latency between nodes.
    Matrix {
        /// The latency of each pair.
        pairs: Vec<NodeLatency>,
    },
    /// The nodes of a guest.
    Guest {
        /// The accelerator that ran it.
        accelerator: String,
        /// The guest's nodes.
        nodes: Vec<GuestNode>,
    },
    /// Settings that were changed.
    Settings {
        /// Each setting, with its value before and after the test.
        settings: Vec<PutBack>,
    },
}

/// Pages that should be on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NodePages {
    pub node: NodeId,
    /// The page size in bytes.
    pub page_bytes: u64,
    /// The number of pages checked.
    pub pages: u64,
    /// The number of pages on the node.
    pub on_node: u64,
}

/// The latency from a node's cpus to a node's memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NodeLatency {
    /// The node of the cpu.
    pub from: NodeId,
    /// The node of the memory.
    pub to: NodeId,
    /// The load latency, in nanoseconds.
    pub latency_ns: f64,
    /// The distance given by the firmware.
    pub distance: Option<u8>,
}

/// A guest node, with its intended and actual location.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GuestNode {
    /// The host node that the guest node is bound to.
    pub host: NodeId,
    /// The cpu on which the node's vCPU runs.
    pub runs_on: Option<CpuId>,
    /// Bytes of its memory on that host node.
    pub there_bytes: u64,
    /// Bytes of its memory on other host nodes.
    pub elsewhere_bytes: u64,
}

/// A setting that was changed and restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PutBack {
    /// The setting.
    pub name: String,
    /// The setting's value before the test.
    pub before: String,
    /// The setting's value after the test.
    pub after: String,
}
