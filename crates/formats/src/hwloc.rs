//! hwloc: `lstopo` XML of versions 1 and 2 and 3, and synthetic descriptions.
//!
//! XML carries cpus with packages, cores, L3 groups and caches, nodes with their
//! memory, their huge pages and memory-side caches (since version 2), distances between
//! nodes, and what a process may use. [`CARRIES`] has the list. Core and L3 group numbers are given anew, by
//! smallest cpu; a node without cpus is attached to the whole machine, so
//! that a cpu of no node is read as one of it.

mod bitmap;
mod distances;
mod read;
mod synthetic;
mod tree;
mod write;

use crate::feature::Feature;

pub use read::read_xml;
pub use synthetic::write_synthetic;
pub use write::{XmlVersion, write_xml};

/// What XML of version 2 carries beside nodes, online cpus and memory.
pub const CARRIES: &[Feature] = &[
    Feature::Packages,
    Feature::Cores,
    Feature::L3Groups,
    Feature::Caches,
    Feature::Distances,
    Feature::OfflineCpus,
    Feature::UnplacedCpus,
    Feature::Bytes,
    Feature::HugePages,
    Feature::MemorySideCaches,
    Feature::Allowed,
];
/// What a synthetic description carries.
pub const SYNTHETIC_CARRIES: &[Feature] =
    &[Feature::Packages, Feature::Cores, Feature::L3Groups, Feature::Caches];

/// The name of the format in messages.
const FORMAT: &str = "lstopo XML";
