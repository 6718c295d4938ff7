//! Graphviz: nodes in their packages, with an edge to each nearest node.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use numalab_topology::{LOCAL_DISTANCE, Machine, Node};

use crate::device::label_of;
use crate::feature::{Carried, Feature};
use crate::size::format_rounded;

/// The features that a graph shows.
pub const CARRIED: Carried = Carried {
    format: "a graph",
    features: &[
        Feature::Nodes,
        Feature::Memory,
        Feature::Packages,
        Feature::Distances,
        Feature::Tiers,
        Feature::OfflineCpus,
        Feature::OfflineNodes,
        Feature::Devices,
    ],
    but: &[
        Feature::DeviceIds,
        Feature::UnplacedDevices,
        Feature::PackagesInNodes,
        Feature::FarDistances,
        Feature::CpuState,
        Feature::NodeState,
        Feature::Digits,
    ],
};

/// Draws a machine as an undirected graph for `dot`. Every node is joined to those at its smallest
/// distance; an edge is labelled with the distance, or with both directions if they differ.
#[must_use]
pub fn write(machine: &Machine) -> String {
    let mut text = String::from(
        "graph machine {\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n",
    );
    text.push_str("  edge [fontname=\"sans-serif\"];\n");
    let mut packages: BTreeMap<Option<u32>, Vec<&Node>> = BTreeMap::new();
    for node in &machine.nodes {
        packages.entry(package_of(machine, node)).or_default().push(node);
    }
    for (package, nodes) in packages {
        let indent = match package {
            None => "  ",
            Some(package) => {
                let _ = writeln!(
                    text,
                    "  subgraph cluster_package{package} {{\n    label=\"package {package}\";"
                );
                "    "
            }
        };
        for node in nodes {
            let _ = writeln!(text, "{indent}node{} [label=\"{}\"];", node.id, label(machine, node));
        }
        if package.is_some() {
            text.push_str("  }\n");
        }
    }
    edges(machine, &mut text);
    text.push_str("}\n");
    text
}

/// Returns the package that contains all cpus of a node.
fn package_of(machine: &Machine, node: &Node) -> Option<u32> {
    let mut packages = node.cpus.iter().map(|cpu| machine.cpu(cpu).and_then(|cpu| cpu.package));
    let first = packages.next()??;
    packages.all(|package| package == Some(first)).then_some(first)
}

fn label(machine: &Machine, node: &Node) -> String {
    let mut label = format!("node {}", node.id);
    if !node.cpus.is_empty() {
        let _ = write!(label, "\\ncpus {}", node.cpus);
    }
    if node.memory_bytes > 0 {
        let _ = write!(label, "\\n{}", format_rounded(node.memory_bytes));
    }
    if let Some(tier) = machine.tier_of(node.id) {
        let _ = write!(label, "\\ntier {tier}");
    }
    for device in machine.devices.iter().filter(|device| device.node == Some(node.id)) {
        let _ = write!(label, "\\n{}", label_of(device));
    }
    label
}

fn edges(machine: &Machine, text: &mut String) {
    let count = machine.nodes.len();
    let distance = |from, to| machine.distances.get(from, to);
    let nearest = |from: usize| {
        let others = (0..count).filter(|&to| to != from);
        others.filter_map(|to| distance(from, to)).min()
    };
    let nearest: Vec<Option<u8>> = (0..count).map(nearest).collect();
    for from in 0..count {
        for to in from + 1..count {
            let (there, back) = (distance(from, to), distance(to, from));
            let near = |value: Option<u8>, from: usize| value.is_some() && value == nearest[from];
            if !near(there, from) && !near(back, to) {
                continue;
            }
            let label = match (there, back) {
                (Some(there), Some(back)) if there != back => format!("{there} / {back}"),
                (Some(value), _) | (None, Some(value)) => value.to_string(),
                (None, None) => continue,
            };
            // Nearer nodes are drawn closer together.
            let weight = u32::from(u8::MAX)
                / u32::from(there.or(back).unwrap_or(u8::MAX).max(LOCAL_DISTANCE));
            let (from, to) = (machine.nodes[from].id, machine.nodes[to].id);
            let _ =
                writeln!(text, "  node{from} -- node{to} [label=\"{label}\", weight={weight}];");
        }
    }
}
