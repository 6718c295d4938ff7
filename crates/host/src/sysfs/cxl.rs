//! Marks nodes of CXL memory, from `sys/bus/dax/devices`.

use std::fs;

use numalab_topology::Node;

use super::reader::Reader;

const DIRECTORY: &str = "sys/bus/dax/devices";

/// Marks the nodes that Linux created from regions of CXL memory: a DAX device is in a region, and
/// gives the node that it became (Linux `Documentation/ABI/testing/sysfs-bus-dax`).
pub(super) fn mark(reader: &mut Reader<'_>, nodes: &mut [Node]) {
    for name in reader.root.names(DIRECTORY) {
        let directory = format!("{DIRECTORY}/{name}");
        let Ok(place) = fs::read_link(reader.root.path(&directory)) else { continue };
        let in_region = |part: &std::ffi::OsStr| part.to_string_lossy().starts_with("region");
        if !place.iter().any(in_region) {
            continue;
        }
        let target = reader.number(&format!("{directory}/target_node"));
        let made = nodes.iter_mut().find(|node| Some(u64::from(node.id.0)) == target);
        if let Some(node) = made {
            node.cxl = true;
        }
    }
}
