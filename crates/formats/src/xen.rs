//! Xen: the lines of an `xl` configuration that describe the cpus and nodes of a guest
//! (`xl.cfg(5)`).

use std::fmt::Write as _;

use numalab_topology::{Findings, Machine};

use crate::error::WriteError;
use crate::feature::{Carried, Feature};
use crate::guest::{Guest, GuestNode};
use crate::reading::Written;

const FORMAT: &str = "an xl configuration";

/// The features that a configuration represents.
pub const CARRIED: Carried = Carried {
    format: "xl.cfg",
    features: &[Feature::UnplacedCpus, Feature::Nodes, Feature::Memory, Feature::Distances],
    but: &[Feature::Bytes, Feature::SharedCpus],
};

/// Writes `vcpus`, `memory` and `vnuma`.
///
/// # Errors
/// [`WriteError::Unknown`] without nodes, cpus or memory; [`WriteError::Inexpressible`] for a
/// node without memory.
pub fn write(machine: &Machine) -> Result<Written, WriteError> {
    let mut findings = Findings::default();
    // Virtual cpus keep the machine's order: xl has no packages to group them by.
    let guest = Guest::of(FORMAT, &CARRIED.left(machine), &mut findings)?;
    if let Some(index) = guest.nodes.iter().position(|node| node.memory_mib == 0) {
        let what = format!("guest node {index}, which has no memory");
        return Err(WriteError::Inexpressible { format: FORMAT, what });
    }
    let mut text = format!("vcpus = {}\nmemory = {}\n", guest.cpus.len(), guest.memory_mib());
    text.push_str("vnuma = [\n");
    for node in &guest.nodes {
        let _ = writeln!(text, "  [{}],", virtual_node(node));
    }
    text.push_str("]\n");
    Ok(Written { output: text, losses: findings.into_list() })
}

fn virtual_node(node: &GuestNode) -> String {
    let mut items = vec![format!("size={}", node.memory_mib)];
    if !node.cpus.is_empty() {
        items.push(format!("vcpus={}", node.cpus));
    }
    let distances: Vec<String> = node.distances.iter().map(ToString::to_string).collect();
    items.push(format!("vdistances={}", distances.join(",")));
    let quoted: Vec<String> = items.iter().map(|item| format!("\"{item}\"")).collect();
    quoted.join(", ")
}
