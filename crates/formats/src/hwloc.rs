//! hwloc: `lstopo` XML of versions 1, 2 and 3, its outlines for terminals, and synthetic descriptions.
//!
//! XML represents cpus with packages, cores, L3 groups and caches, nodes with their memory and
//! distances, and the restrictions of a process; since version 2 also huge pages, memory-side
//! caches, latencies and bandwidths. [`CARRIED`] is the full list. Cores and L3 groups are
//! renumbered by smallest cpu. hwloc attaches a node without cpus to the whole machine: our own
//! files mark such a node, and in other files the node gets the cpus that no other node has.

mod bitmap;
mod distances;
mod element;
mod memory_attributes;
mod node_memory;
mod outline;
mod read;
mod synthetic;
mod synthetic_indexes;
mod synthetic_items;
mod synthetic_read;
mod tree;
mod write;

use crate::feature::{Carried, Feature};

pub use outline::{is_outline, read_outline};
pub use read::read_xml;
pub use synthetic::write_synthetic;
pub use synthetic_read::{is_synthetic, read_synthetic};
pub use write::write_xml;

/// The features that XML represents.
pub const CARRIED: Carried = Carried {
    format: "hwloc XML",
    features: &[
        Feature::Nodes,
        Feature::Memory,
        Feature::Packages,
        Feature::Cores,
        Feature::L3Groups,
        Feature::Caches,
        Feature::Distances,
        Feature::OfflineCpus,
        Feature::UnplacedCpus,
        Feature::HugePages,
        Feature::MemorySideCaches,
        Feature::Access,
        Feature::Allowed,
    ],
    but: &[
        Feature::PartialDistances,
        Feature::LoneDistance,
        Feature::OfflinePlaces,
        Feature::FreeHugePages,
        Feature::CpulessInitiators,
        Feature::AccessClasses,
        Feature::Picoseconds,
        Feature::Isolated,
        Feature::SharedCpus,
    ],
};
/// The features that a synthetic description represents.
pub const SYNTHETIC_CARRIED: Carried = Carried {
    format: "a synthetic description",
    features: &[
        Feature::Nodes,
        Feature::Memory,
        Feature::Packages,
        Feature::Cores,
        Feature::L3Groups,
        Feature::Caches,
    ],
    but: &[Feature::InnerCaches, Feature::CacheLines],
};

/// The info attribute that marks a node without cpus, because hwloc attaches such a node to an
/// object with cpus.
const CPU_LESS: &str = "NumalabCpuLess";
/// The info attribute that marks a node with unknown memory, because hwloc cannot express it.
const MEMORY_UNKNOWN: &str = "NumalabMemoryUnknown";
/// The largest page size of ordinary memory (Arm, POWER); most huge pages are larger.
const LARGEST_BASE_PAGE: u64 = 64 << 10;

/// The name of the format in messages.
const FORMAT: &str = "lstopo XML";
