//! What a machine's memory takes, beside what its topology says: the `[memory]` table.

use numalab_memory_model::curve::Curve;
use numalab_memory_model::machine::{Core, Tlb, Transfers};
use numalab_topology::NodeSet;
use serde::{Deserialize, Serialize};

/// Figures that the memory emulator needs and a topology has no place for. Rows and columns of
/// matrices are the online nodes in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryFigures {
    /// What a hit in each level of the data caches takes in ns, nearest first, from load to use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cache_latency_ns: Vec<f64>,
    /// What a core has under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<Core>,
    /// What a line takes from one core's caches to another's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfers: Option<Transfers>,
    /// How addresses are translated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tlb: Option<Tlb>,
    /// What memory and links take under load; what is not named has no limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load: Vec<LoadFigures>,
}

/// Load on the memory of some nodes, or on the links to it from others, all alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadFigures {
    /// Whose memory.
    pub nodes: NodeSet,
    /// From whose cpus, for the links; without it the memory, whoever asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<NodeSet>,
    /// The bandwidth at which it saturates in 10^6 bytes a second, where no curve is known:
    /// latency rises towards it as it does on a Graviton3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_mb_s: Option<f64>,
    /// Latency over bandwidth, by rising share of writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<Curve>,
}
