//! hwloc: `lstopo` XML of versions 1 and 2 and 3, and synthetic descriptions.
//!
//! XML carries cpus with packages, cores, L3 groups and caches, nodes with their
//! memory, distances between nodes, and what a process may use. It does not
//! carry proximity domains, APIC ids, ranges, huge page pools, free memory, access
//! attributes or tiers. Core and L3 group numbers are given anew, by
//! smallest cpu; a node without cpus is attached to the whole machine, so
//! that a cpu of no node is read as one of it.

mod bitmap;
mod distances;
mod read;
mod synthetic;
mod tree;
mod write;

pub use read::read_xml;
pub use synthetic::write_synthetic;
pub use write::{XmlVersion, write_xml};

/// The name of the format in messages.
const FORMAT: &str = "lstopo XML";
