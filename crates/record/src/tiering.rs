//! The result of a probe of memory tiers.

use numalab_topology::NodeSet;
use serde::{Deserialize, Serialize};

use crate::study::Reading;

/// The result of a probe of whether hot memory reaches the fast tier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TieringProbed {
    /// The nodes of the tier next to the cpu.
    pub fast: NodeSet,
    /// The nodes of the slower tiers.
    pub slow: NodeSet,
    /// The nodes of each tier, fastest first.
    pub tiers: Vec<NodeSet>,
    /// The working set in bytes.
    pub size_bytes: u64,
    /// A description of how often each part was accessed.
    pub heat: String,
    /// A description of the initial placement.
    pub placed: String,
    /// The figures, named as in workloads.
    pub readings: Vec<Reading>,
    /// The location of the pages over time, with the mean access time.
    pub looks: Vec<TierLook>,
}

/// The number of pages on each tier at one time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TierLook {
    /// Nanoseconds since the first access.
    pub at_ns: u64,
    /// The mean time of an access since the previous look, in nanoseconds.
    pub latency_ns: f64,
    /// Pages on the fast tier.
    pub fast_pages: u64,
    /// Pages on slower tiers.
    pub slow_pages: u64,
    /// Pages on each tier, fastest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tier_pages: Vec<u64>,
    /// The number of pages that the kernel has marked to detect their users; it does not report
    /// their nodes.
    pub marked_pages: u64,
}

impl TieringProbed {
    /// Returns the value of a figure, by name.
    pub fn value(&self, name: &str) -> Option<f64> {
        let of = self.readings.iter().find(|reading| reading.quantity.metric == name);
        of.map(|reading| reading.value)
    }
}
