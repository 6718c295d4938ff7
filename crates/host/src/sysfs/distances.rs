//! Reads distances between nodes.

use numalab_topology::{Distances, LOCAL_DISTANCE, Node, NodeSet, count};

use super::nodes;
use super::reader::{NODE_DIRECTORY, Reader, shortened};

/// Reads `nodeN/distance` of all nodes. A row has one value per online node. Missing and invalid
/// values stay unknown. Empty if no node has the file.
pub(super) fn read(reader: &mut Reader<'_>, nodes: &[Node]) -> Distances {
    let mut distances = Distances::unknown(nodes.len());
    let mut without = NodeSet::new();
    for (from, node) in nodes.iter().enumerate() {
        let path = format!("{}/distance", nodes::directory(node.id));
        let Some(text) = reader.text(&path) else {
            without.insert(node.id);
            continue;
        };
        let values: Vec<&str> = text.split_ascii_whitespace().collect();
        let columns = columns(reader, nodes, values.len(), &path);
        for (to, value) in columns.into_iter().zip(values) {
            if let Some(distance) = distance(reader, &path, value) {
                distances.set(from, to, distance);
            }
        }
        check_local(reader, &distances, from, &path);
    }
    let any = without.len() < nodes.len();
    // A single node needs no file: its distance to itself is fixed.
    if let ([_], false) = (nodes, any) {
        return Distances::uniform(1, LOCAL_DISTANCE);
    }
    if !without.is_empty() {
        let message =
            format!("nodes without a file `distance`: {without}; distances from these are unknown");
        reader.note("distances-missing", NODE_DIRECTORY, message);
    }
    if any { distances } else { Distances::default() }
}

/// Returns the dense indices of the nodes in a row: all nodes, or the online ones if their number
/// matches.
fn columns(reader: &mut Reader<'_>, nodes: &[Node], values: usize, path: &str) -> Vec<usize> {
    let online: Vec<usize> = (0..nodes.len()).filter(|&index| nodes[index].online).collect();
    if values == online.len() {
        return online;
    }
    if values != nodes.len() {
        let message = format!(
            "{} for {}, {} of them online: {}",
            count(values, "value"),
            count(nodes.len(), "node"),
            online.len(),
            if values < nodes.len() {
                "the last ones are unknown"
            } else {
                "the last values are ignored"
            }
        );
        reader.warn("distance-row-length", path, message);
    }
    (0..nodes.len()).collect()
}

/// Parses a distance; 255 means unreachable memory, and values below that of a node to itself have
/// no meaning (ACPI 6.5, section 5.2.17).
fn distance(reader: &mut Reader<'_>, path: &str, value: &str) -> Option<u8> {
    match value.parse::<u8>() {
        Ok(distance) if distance >= LOCAL_DISTANCE => Some(distance),
        _ => {
            let message = format!("`{}`: expected a distance from 10 to 255", shortened(value));
            reader.warn("distance-value", path, message);
            None
        }
    }
}

fn check_local(reader: &mut Reader<'_>, distances: &Distances, node: usize, path: &str) {
    if let Some(local) = distances.get(node, node)
        && local != LOCAL_DISTANCE
    {
        let message = format!("`{local}` to itself: expected {LOCAL_DISTANCE}");
        reader.warn("distance-local", path, message);
    }
}
