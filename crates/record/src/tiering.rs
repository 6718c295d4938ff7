//! What a probe of memory tiers found.

use numalab_topology::NodeSet;
use serde::{Deserialize, Serialize};

use crate::study::Reading;

/// Whether hot memory came to the fast tier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TieringProbed {
    /// The nodes of the tier next to the cpu.
    pub fast: NodeSet,
    /// The nodes of the slower tiers.
    pub slow: NodeSet,
    /// The nodes of each tier, fastest first.
    pub tiers: Vec<NodeSet>,
    /// The working set in bytes.
    pub size_bytes: u64,
    /// What was accessed how often, in words.
    pub heat: String,
    /// Where memory was placed, in words.
    pub placed: String,
    /// The figures, as workloads have them.
    pub readings: Vec<Reading>,
    /// Where the pages were from time to time, and what an access took until then.
    pub looks: Vec<TierLook>,
}

/// Where pages were at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TierLook {
    /// Nanoseconds since the first access.
    pub at_ns: u64,
    /// Mean time of an access since the look before, in nanoseconds.
    pub latency_ns: f64,
    /// Pages on the fast tier.
    pub fast_pages: u64,
    /// Pages on slower ones.
    pub slow_pages: u64,
    /// Pages on each tier, fastest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tier_pages: Vec<u64>,
    /// Pages that the kernel has marked to see who uses them, and does not tell the node of.
    pub marked_pages: u64,
}

impl TieringProbed {
    /// The value of a figure, by name.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<f64> {
        let of = self.readings.iter().find(|reading| reading.quantity.metric == name);
        of.map(|reading| reading.value)
    }
}
