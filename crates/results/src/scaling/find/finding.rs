//! What is seen in a scaling run, as values.

use numalab_record::scaling::ScalingMetric;
use numalab_topology::NodeId;
use serde::Serialize;

use crate::Finding;

/// Something seen over ranks, with the figures that show it.
pub type ScalingFinding = Finding<ScalingObservation, ScalingEvidence>;

/// Something seen in a scaling run. Where the evidence cannot tell two causes apart, it
/// says so.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ScalingObservation {
    /// Other work disturbed steps, and may be what other findings show.
    Disturbance {
        /// Steps in all.
        steps: usize,
    },
    /// Which cache each size falls in, by the reported sizes of the caches.
    Caches {
        /// The ranks of the step.
        ranks: usize,
        /// The caches that hold a measured size, and memory, from the smallest.
        fits: Vec<CacheFit>,
    },
    /// Where latency over size is flat; which caches these are is not known.
    Plateaus {
        /// From the smallest size.
        plateaus: Vec<Plateau>,
    },
    /// A size that fits an L3 alone, and does not when every rank of its CCD has one.
    SharedL3 {
        /// The size of each rank, in bytes.
        size_bytes: u64,
        /// The L3, in bytes.
        l3_bytes: u64,
        /// Ranks in the CCD.
        ranks: u64,
        /// Latency of a rank alone.
        alone_ns: f64,
        /// Latency with these ranks.
        shared_ns: f64,
        /// Whether their ratio is beyond the threshold.
        shows: bool,
    },
    /// Remote and local memory, within one step.
    LocalAndRemote {
        /// Bytes of each rank.
        size_bytes: u64,
        /// Ranks with local memory.
        local: Side,
        /// Ranks with remote memory.
        remote: Side,
        /// From local to remote.
        difference: Difference,
    },
    /// As many ranks on the same memory, packed more and less densely into CCDs.
    Ccd {
        /// Ranks of each step.
        ranks: usize,
        /// The most ranks on a node's memory, of both steps.
        on_node: usize,
        /// Bytes of each rank.
        size_bytes: u64,
        /// The most ranks in a CCD, packed.
        packed: usize,
        /// The most ranks in a CCD, spread.
        spread: usize,
        /// From spread to packed.
        difference: Difference,
    },
    /// More ranks on a node's memory, with no more of them in a CCD.
    MemoryControllers {
        /// The series.
        series: String,
        /// The most ranks on a node's memory, in the step with few.
        few: usize,
        /// The same in the step with many.
        many: usize,
        /// The most ranks in a CCD, of both steps.
        in_ccd: usize,
        /// Bytes of each rank.
        size_bytes: u64,
        /// From few to many.
        difference: Difference,
    },
    /// From the fewest to the most ranks of a series.
    Contention {
        /// The series.
        series: String,
        /// The fewest ranks.
        few: usize,
        /// The most ranks.
        many: usize,
        /// Bytes of each rank.
        size_bytes: u64,
        /// From the fewest to the most.
        difference: Difference,
        /// What causes it; `None` if there is no difference.
        cause: Option<Cause>,
    },
    /// Ranks all at once, and the same ranks one after the other.
    Concurrent {
        /// The ranks.
        ranks: usize,
        /// Bytes of each rank.
        size_bytes: u64,
        /// From one at a time to all at once.
        difference: Difference,
    },
    /// Where the ranks were is not recorded: nothing can be said about CCDs, nodes and distance.
    PlacementUnknown,
}

/// The sizes that fit a cache, or only memory.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CacheFit {
    /// The cache's level; `None` for memory.
    pub level: Option<u8>,
    /// The cache's capacity in bytes; `None` for memory.
    pub capacity_bytes: Option<u64>,
    /// The smallest size measured in it, in bytes.
    pub from_bytes: u64,
    /// The largest.
    pub to_bytes: u64,
    /// The lowest latency.
    pub least_ns: f64,
    /// The highest.
    pub most_ns: f64,
    /// Whether latency denies that the cache holds them: others have it, or it is not there.
    pub as_slow_as_memory: bool,
}

/// A flat stretch of latency over size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plateau {
    /// Its latency.
    pub latency_ns: f64,
    /// The smallest size, in bytes.
    pub from_bytes: u64,
    /// The largest.
    pub to_bytes: u64,
}

/// Ranks of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Side {
    /// How many.
    pub ranks: usize,
    /// Their mean, in the metric's unit.
    pub mean: f64,
}

/// How ranks differ under two conditions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// What the figures are.
    pub metric: ScalingMetric,
    /// The second mean over the first.
    pub ratio: f64,
    /// Whether it is beyond the threshold and the spread of the ranks.
    pub real: bool,
}

/// What a slowdown with more ranks is laid to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// What the ranks of a CCD share: each node's memory carries the same.
    Ccd,
    /// What else the nodes share: neither a CCD nor a node's memory carries more.
    BetweenNodes,
    /// CCDs and memory controllers alike.
    NotToldApart,
    /// Unknown, since the placement of the ranks is not recorded.
    Unknown,
}

/// A figure that a finding rests on.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ScalingEvidence {
    /// The ranks of a step at a size.
    Ranks {
        /// The file.
        file: String,
        /// Bytes of each rank.
        size_bytes: u64,
        /// What the figures are.
        metric: ScalingMetric,
        /// How many ranks.
        ranks: usize,
        /// Their mean.
        mean: f64,
        /// The least.
        min: f64,
        /// The most.
        max: f64,
    },
    /// A step's windows that were disturbed.
    Disturbed {
        /// The file.
        file: String,
        /// Their share, from 0 to 1.
        share: f64,
    },
    /// The ranks between two nodes.
    Nodes {
        /// The file.
        file: String,
        /// The node of the cpus.
        cpu_node: NodeId,
        /// The node of the memory.
        memory_node: NodeId,
        /// The distance between them, where known.
        distance: Option<u8>,
        /// What the figures are.
        metric: ScalingMetric,
        /// How many ranks.
        ranks: usize,
        /// Their mean.
        mean: f64,
    },
}
