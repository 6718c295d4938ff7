//! The performance of a machine's memory, in addition to its topology: the `[memory]` table.

use numalab_memory_model::curve::Curve;
use numalab_memory_model::machine::{Calls, Core, Faults, Tlb, Transfers};
use numalab_topology::NodeSet;
use serde::{Deserialize, Serialize};

/// Figures that the memory emulator needs and that are not part of a topology. Rows and columns of
/// matrices are the online nodes in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryFigures {
    /// Load-to-use latency of a hit in each level of the data caches in ns, nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cache_latency_ns: Vec<f64>,
    /// Mean time in ns after which other users of the last cache, such as other guests of the host,
    /// evict an unused line, if the cache is shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub life_ns: Option<f64>,
    /// Additional latency in ns of a line of memory outside the pages read last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_page_ns: Option<f64>,
    /// Page faults; without it, first uses of pages take no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<Faults>,
    /// System calls; without it, they take no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<Calls>,
    /// The number of accesses that a core has in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<Core>,
    /// Latency of a line from one core's caches to another's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfers: Option<Transfers>,
    /// Address translation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tlb: Option<Tlb>,
    /// Memory and links under load; those not listed have no limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load: Vec<LoadFigures>,
}

/// Load on the memory of some nodes, or on the links to it from others, the same for all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadFigures {
    /// Nodes of the memory.
    pub nodes: NodeSet,
    /// Nodes of the cpus, for the links; `None` for the memory itself, for accesses from anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<NodeSet>,
    /// The bandwidth in 10^6 bytes per second at which the memory saturates, if no curve is known:
    /// latency rises towards it as on a Graviton3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_mb_s: Option<f64>,
    /// Latency over bandwidth, by rising share of writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<Curve>,
}
