//! hwloc: `lstopo` XML of versions 1 and 2 and 3, and synthetic descriptions.
//!
//! XML carries cpus with packages, cores, L3 groups and caches, nodes with their memory and
//! distances, and what a process may use; since version 2 also huge pages, memory-side caches,
//! latencies and bandwidths. [`CARRIED`] has the list. Core and L3 group numbers are given anew,
//! by smallest cpu. hwloc attaches a node without cpus to the whole machine: ours say that they
//! have none, of others the cpus that no other node has are theirs.

mod bitmap;
mod distances;
mod element;
mod memory_attributes;
mod read;
mod synthetic;
mod tree;
mod write;

use crate::feature::{Carried, Feature};

pub use read::read_xml;
pub use synthetic::write_synthetic;
pub use write::{XmlVersion, write_xml};

/// What XML of version 2 carries.
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
    ],
};
/// What a synthetic description carries.
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

/// What a node says of itself that has no cpus: hwloc attaches it where other nodes have some.
const CPU_LESS: &str = "NumalabCpuLess";
/// Pages of ordinary memory are not larger (Arm, POWER); most huge ones are.
const LARGEST_BASE_PAGE: u64 = 64 << 10;

/// The name of the format in messages.
const FORMAT: &str = "lstopo XML";
