//! Findings about a scaling run, as values.

use numalab_record::scaling::ScalingMetric;
use numalab_topology::NodeId;
use serde::Serialize;

use crate::Finding;

/// A finding over ranks, with the figures that show it.
pub type ScalingFinding = Finding<ScalingObservation, ScalingEvidence>;

/// An observation about a scaling run. If the evidence cannot separate two causes, the observation
/// says so.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ScalingObservation {
    /// Other work disturbed some steps, and may explain other findings.
    Disturbance {
        /// Total number of steps.
        steps: usize,
    },
    /// The cache that each size fits, by the reported cache sizes.
    Caches {
        /// Number of ranks of the step.
        ranks: usize,
        /// The caches that hold a measured size, and memory, smallest first.
        fits: Vec<CacheFit>,
    },
    /// The sizes over which latency is flat; the caches behind them are unknown.
    Plateaus {
        /// The plateaus, smallest size first.
        plateaus: Vec<Plateau>,
    },
    /// A size that fits an L3 for a single rank, but not for all ranks of its CCD.
    SharedL3 {
        /// Buffer size of each rank, in bytes.
        size_bytes: u64,
        /// Size of the L3, in bytes.
        l3_bytes: u64,
        /// Number of ranks in the CCD.
        ranks: u64,
        /// Latency of a single rank, in ns.
        alone_ns: f64,
        /// Latency with all these ranks, in ns.
        shared_ns: f64,
        /// True if the ratio of the two exceeds the threshold.
        shows: bool,
    },
    /// Remote memory compared with local memory within one step.
    LocalAndRemote {
        /// Buffer size of each rank, in bytes.
        size_bytes: u64,
        /// Ranks with local memory.
        local: RankSide,
        /// Ranks with remote memory.
        remote: RankSide,
        /// The change from local to remote.
        difference: Difference,
    },
    /// The same number of ranks on the same memory, packed more and less densely into CCDs.
    Ccd {
        /// Number of ranks of each step.
        ranks: usize,
        /// The largest number of ranks on one node's memory, in both steps.
        on_node: usize,
        /// Buffer size of each rank, in bytes.
        size_bytes: u64,
        /// The largest number of ranks per CCD when packed.
        packed: usize,
        /// The largest number of ranks per CCD when spread.
        spread: usize,
        /// The change from spread to packed.
        difference: Difference,
    },
    /// More ranks on one node's memory, with the same number or fewer per CCD.
    MemoryControllers {
        /// The series' name.
        series: String,
        /// The largest number of ranks on one node's memory, in the step with fewer.
        few: usize,
        /// The largest number of ranks on one node's memory, in the step with more.
        many: usize,
        /// The largest number of ranks per CCD, in both steps.
        in_ccd: usize,
        /// Buffer size of each rank, in bytes.
        size_bytes: u64,
        /// The change from few to many.
        difference: Difference,
    },
    /// The fewest ranks of a series compared with the most.
    Contention {
        /// The series' name.
        series: String,
        /// Number of ranks in the smallest step.
        few: usize,
        /// Number of ranks in the largest step.
        many: usize,
        /// Buffer size of each rank, in bytes.
        size_bytes: u64,
        /// The change from the fewest to the most.
        difference: Difference,
        /// The cause; `None` if there is no difference.
        cause: Option<Cause>,
    },
    /// Ranks all at once, compared with the same ranks one after the other.
    Concurrent {
        /// Number of ranks.
        ranks: usize,
        /// Buffer size of each rank, in bytes.
        size_bytes: u64,
        /// The change from one at a time to all at once.
        difference: Difference,
    },
    /// The record lacks the placement of ranks, so CCDs, nodes and distances are unknown.
    PlacementUnknown,
}

/// Sizes that fit one cache, or only memory.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CacheFit {
    /// The cache's level; `None` for memory.
    pub level: Option<u8>,
    /// The cache's capacity in bytes; `None` for memory.
    pub capacity_bytes: Option<u64>,
    /// The smallest measured size that fits the cache, in bytes.
    pub from_bytes: u64,
    /// The largest measured size that fits the cache, in bytes.
    pub to_bytes: u64,
    /// The lowest latency, in ns.
    pub least_ns: f64,
    /// The highest latency, in ns.
    pub most_ns: f64,
    /// True if the latency shows that the cache does not hold these sizes: others occupy it, or it
    /// does not exist.
    pub as_slow_as_memory: bool,
}

/// A flat stretch of latency over size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Plateau {
    pub latency_ns: f64,
    /// The smallest size, in bytes.
    pub from_bytes: u64,
    /// The largest size, in bytes.
    pub to_bytes: u64,
}

/// The ranks on one side of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RankSide {
    /// Number of ranks.
    pub ranks: usize,
    /// The mean over these ranks, in the metric's unit.
    pub mean: f64,
}

/// The difference between ranks under two conditions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Difference {
    /// The metric of the figures.
    pub metric: ScalingMetric,
    /// The second mean over the first.
    pub ratio: f64,
    /// True if the difference exceeds both the threshold and the spread of the ranks.
    pub real: bool,
}

/// The cause of a slowdown with more ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Resources that the ranks of a CCD share: the load on each node's memory is the same.
    Ccd,
    /// Other resources that nodes share: neither a CCD nor a node's memory has more load.
    BetweenNodes,
    /// CCDs or memory controllers; the evidence does not separate them.
    CcdOrMemory,
    /// Unknown, because the record lacks the nodes or the CCDs of ranks.
    Unknown,
}

/// A figure behind a finding.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ScalingEvidence {
    /// The ranks of a step at one size.
    Ranks {
        /// The step's file.
        file: String,
        /// Buffer size of each rank, in bytes.
        size_bytes: u64,
        /// The metric of the figures.
        metric: ScalingMetric,
        /// Number of ranks.
        ranks: usize,
        /// The mean over the ranks.
        mean: f64,
        /// The lowest value.
        min: f64,
        /// The highest value.
        max: f64,
    },
    /// The disturbed windows of a step.
    Disturbed {
        /// The step's file.
        file: String,
        /// The share of disturbed windows, 0 to 1.
        share: f64,
    },
    /// The ranks on one pair of nodes.
    Nodes {
        /// The step's file.
        file: String,
        /// The cpus' node.
        cpu_node: NodeId,
        memory_node: NodeId,
        /// The distance between them, if known.
        distance: Option<u8>,
        /// The metric of the figures.
        metric: ScalingMetric,
        /// Number of ranks.
        ranks: usize,
        /// The mean over the ranks.
        mean: f64,
    },
}
