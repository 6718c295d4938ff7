//! What ranks measured together: a scaling run's step, as `<step>.json` keeps it.

use std::collections::BTreeMap;

use numalab_topology::{CpuId, CpuSet, NodeId};
use serde::{Deserialize, Serialize};

use crate::metric::Metric;
use crate::placement::ProofMethod;

/// What all ranks of one launch found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankRun {
    /// That of [`Kind::Ranks`](crate::Kind::Ranks).
    pub schema: String,
    /// What the values measure: latency or bandwidth.
    pub metric: Metric,
    /// Their unit.
    pub unit: String,
    /// The version of numalab.
    pub version: String,
    /// The command line of rank 0.
    pub command: Vec<String>,
    /// Who started the ranks.
    pub launcher: String,
    /// How they met.
    pub meeting: String,
    /// The seed that every rank's own is made of.
    pub seed: u64,
    /// Loads measured for each size (latency), else 0.
    pub iterations: u64,
    /// Loads before these.
    pub warmup: u64,
    /// What was gone through: `random`, `page-local`, `fisher-yates`, or a stream kernel.
    pub chain: String,
    /// The pages behind the buffers.
    pub pages: String,
    /// Whether the ranks took turns.
    pub serial: bool,
    /// The sizes in the order measured.
    pub sizes_bytes: Vec<u64>,
    /// The ranks by number.
    pub ranks: Vec<RankResult>,
}

/// What one rank found, and where it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankResult {
    /// Its number.
    pub rank: usize,
    /// Its host.
    pub host: String,
    /// The cpu that it was pinned to.
    pub cpu: CpuId,
    /// The affinity that the kernel reported.
    pub affinity: CpuSet,
    /// The cpu's node.
    pub cpu_node: NodeId,
    /// Where its memory was asked from: `bind:0`.
    pub policy: String,
    /// Pages of its buffer found on each node.
    pub memory_nodes: BTreeMap<NodeId, u64>,
    /// How these were found.
    pub method: ProofMethod,
    /// The buffer's first address.
    pub address: u64,
    /// Bytes of the buffer behind pages of each size.
    pub bytes_per_page_size: BTreeMap<u64, u64>,
    /// The mean for each size.
    pub mean: Vec<f64>,
    /// The median of the undisturbed windows for each size; of all where none is.
    pub median: Vec<f64>,
    /// The windows for each size, in time order.
    pub windows: Vec<Vec<f64>>,
    /// When each window was, for each size; absent in results of numalab 0.1.0 and before.
    #[serde(default)]
    pub times: Vec<Vec<WindowTime>>,
    /// Which of them something disturbed, for each size: their places and what it was.
    #[serde(default)]
    pub disturbed: Vec<BTreeMap<usize, String>>,
}

/// When a window was, and what was done in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WindowTime {
    /// When it began, by the clock that the processes of a host share, in nanoseconds.
    pub start_ns: u64,
    /// How long it took in nanoseconds.
    pub duration_ns: u64,
    /// What was done in it: loads or bytes.
    pub work: u64,
}

impl RankResult {
    /// The node that has most of its pages.
    #[must_use]
    pub fn memory_node(&self) -> NodeId {
        let most =
            self.memory_nodes.iter().max_by_key(|(node, pages)| (**pages, u32::MAX - node.0));
        most.map_or(NodeId(0), |(node, _)| *node)
    }
}
