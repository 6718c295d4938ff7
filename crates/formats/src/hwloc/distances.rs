//! Distances between nodes in `lstopo` XML.

use numalab_topology::{Distances, Findings, Machine, NodeId, count};
use roxmltree::Node as Element;

use super::element::{malformed, os_index};
use crate::distance::record;
use crate::error::ReadError;

/// The bit of `kind` for values that are latencies (`HWLOC_DISTANCES_KIND_MEANS_LATENCY`).
const MEANS_LATENCY: u64 = 4;

/// Reads the distances of either version into the machine.
pub(super) fn read(
    root: Element<'_, '_>,
    nodes: &[Element<'_, '_>],
    machine: &mut Machine,
    findings: &mut Findings,
) -> Result<(), ReadError> {
    for element in root.children().filter(|element| element.has_tag_name("distances2")) {
        if is_node_latency(element) {
            return read_v2(element, machine, findings);
        }
    }
    let nested = root.descendants().filter(|element| element.has_tag_name("distances"));
    for element in nested {
        if element.attribute("nbobjs").and_then(|count| count.parse().ok()) == Some(nodes.len()) {
            return read_v1(element, nodes, machine, findings);
        }
    }
    Ok(())
}

fn is_node_latency(element: Element<'_, '_>) -> bool {
    let kind: u64 =
        element.attribute("kind").and_then(|kind| kind.parse().ok()).unwrap_or(MEANS_LATENCY);
    let named = element.attribute("name").is_none_or(|name| name == "NUMALatency");
    element.attribute("type") == Some("NUMANode") && kind & MEANS_LATENCY != 0 && named
}

/// Reads the form of hwloc 2 and 3: a list of node numbers, then rows of distances.
fn read_v2(
    element: Element<'_, '_>,
    machine: &mut Machine,
    findings: &mut Findings,
) -> Result<(), ReadError> {
    let ids: Vec<u32> = numbers(element, "indexes")?;
    let values: Vec<u64> = numbers(element, "u64values")?;
    if element.attribute("indexing").is_some_and(|indexing| indexing != "os") {
        let message = "distances are not by os_index, so they are ignored".to_owned();
        findings.warning("distances-ignored", "distances2".to_owned(), message);
        return Ok(());
    }
    let ids: Vec<NodeId> = ids.into_iter().map(NodeId).collect();
    fill(&ids, &values, machine, findings);
    Ok(())
}

/// Reads the form of hwloc 1: ratios to a base, for all nodes in order of the document.
fn read_v1(
    element: Element<'_, '_>,
    nodes: &[Element<'_, '_>],
    machine: &mut Machine,
    findings: &mut Findings,
) -> Result<(), ReadError> {
    let decimal = |element: Element<'_, '_>, name: &str| {
        let text = element.attribute(name).unwrap_or_default();
        let value: Option<f64> =
            text.parse().ok().filter(|value: &f64| (0.0..=1e9).contains(value));
        value.ok_or_else(|| malformed(element, text, &format!("a number for {name}")))
    };
    let base = decimal(element, "latency_base")?;
    let mut values = Vec::new();
    for latency in element.children().filter(|child| child.has_tag_name("latency")) {
        let value = (decimal(latency, "value")? * base).round();
        // A value above 255 only has to stay above 255: such a distance is unknown.
        let byte = (0u8..=u8::MAX).find(|&byte| f64::from(byte) >= value);
        values.push(byte.map_or(u64::MAX, u64::from));
    }
    let ids: Result<Vec<NodeId>, _> =
        nodes.iter().map(|node| os_index(*node).map(NodeId)).collect();
    fill(&ids?, &values, machine, findings);
    Ok(())
}

fn fill(ids: &[NodeId], values: &[u64], machine: &mut Machine, findings: &mut Findings) {
    let nodes = ids.len();
    if nodes == 0 || values.len() != nodes.saturating_mul(nodes) {
        let (values, nodes) = (count(values.len(), "value"), count(nodes, "node"));
        let message = format!("{values} for {nodes}, so they are ignored");
        findings.warning("distances-ignored", "distances".to_owned(), message);
        return;
    }
    machine.distances = Distances::unknown(machine.nodes.len());
    for (row, &from) in values.chunks(nodes).zip(ids) {
        for (&value, &to) in row.iter().zip(ids) {
            let (Some(from), Some(to)) = (machine.node_index(from), machine.node_index(to)) else {
                continue;
            };
            match u8::try_from(value) {
                Ok(value) => record(&mut machine.distances, from, to, value, findings),
                Err(_) => {
                    let message = format!("the distance {value} is above 255, so it is ignored");
                    findings.warning("distance-too-large", format!("node {from} to {to}"), message);
                }
            }
        }
    }
    machine.note_odd_distances(findings);
}

/// Returns the numbers of all child elements with this name.
fn numbers<T: std::str::FromStr>(
    element: Element<'_, '_>,
    name: &str,
) -> Result<Vec<T>, ReadError> {
    let mut numbers = Vec::new();
    for child in element.children().filter(|child| child.has_tag_name(name)) {
        for word in child.text().unwrap_or_default().split_whitespace() {
            let number = word.parse().map_err(|_| malformed(child, word, "a whole number"))?;
            numbers.push(number);
        }
    }
    Ok(numbers)
}
