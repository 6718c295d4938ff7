//! Who runs where: the ranks of parallel programs on this host, with their threads and memory.

use std::collections::BTreeMap;

use numalab_topology::{CpuSet, NodeId};
use serde::{Deserialize, Serialize};

use super::{BytesByNode, ThreadView, Unseen};

/// The ranks on this host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RanksView {
    /// The ranks, by job and number.
    pub ranks: Vec<RankView>,
    /// The cpus of each node.
    pub cpus_by_node: BTreeMap<NodeId, CpuSet>,
    /// What is missing here and who could see it.
    pub unseen: Vec<Unseen>,
}

/// A rank: of its processes the one with the most memory of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankView {
    /// The job as its launcher calls it: `4242.0` for a step of SLURM; empty where it has no name.
    pub job: String,
    /// Its number, from 0.
    pub rank: usize,
    /// How many ranks the program has, on all hosts.
    pub size: usize,
    /// Its process.
    pub process: u32,
    /// Other processes of the rank.
    pub other_processes: usize,
    /// The command line of the process.
    pub command: String,
    /// Its threads, by number.
    pub threads: Vec<ThreadView>,
    /// Bytes by node that are its own: all but unmodified pages of files.
    pub own_bytes_by_node: BytesByNode,
    /// The share of what its threads touch that is remote, 0 to 1.
    pub remote_share: Option<f64>,
}
