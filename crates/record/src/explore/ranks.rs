//! The ranks of parallel programs on this host, with their threads and memory.

use std::collections::BTreeMap;

use numalab_topology::{CpuSet, NodeId};
use serde::{Deserialize, Serialize};

use super::{BytesByNode, ThreadView, Unseen};

/// The ranks on this host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RanksView {
    /// The ranks, by job and number.
    pub ranks: Vec<RankView>,
    /// The cpus of each node.
    pub cpus_by_node: BTreeMap<NodeId, CpuSet>,
    /// The facts that could not be read, with the user who could read them.
    pub unseen: Vec<Unseen>,
}

/// A rank, represented by the process with the most memory among its processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RankView {
    /// The job as its launcher names it: `4242.0` for a SLURM step; empty if it has no name.
    pub job: String,
    /// The rank's number, from 0.
    pub rank: usize,
    /// The number of ranks of the program, on all hosts; null if its launcher does not give it.
    pub size: Option<usize>,
    /// The rank's process id.
    pub process: u32,
    /// The number of other processes of the rank.
    pub other_processes: usize,
    /// The command line of the process.
    pub command: String,
    /// The rank's threads, by number.
    pub threads: Vec<ThreadView>,
    /// Resident bytes of the process itself by node: all except unmodified file pages.
    pub own_bytes_by_node: BytesByNode,
    /// The remote share of the memory that its threads touch, from 0 to 1.
    pub remote_share: Option<f64>,
}
