//! Sentences about nodes that lack something.

use std::collections::BTreeMap;

use numalab_page::number::size;
use numalab_topology::{Cpu, CpuSet, Machine, Node, NodeId, NodeSet};

use super::cpus::list;

/// Returns the sentences below the table of nodes.
pub(super) fn of_nodes(machine: &Machine) -> Vec<String> {
    [without_memory(machine), without_cpus(machine), no_pools(machine)]
        .into_iter()
        .flatten()
        .collect()
}

/// Names the nearest memory of nodes that have cpus and no memory.
fn without_memory(machine: &Machine) -> Option<String> {
    let has_none = |node: &&Node| node.online && !node.cpus.is_empty() && !node.may_have_memory();
    let mut nodes_by_nearest: BTreeMap<Vec<NodeId>, NodeSet> = BTreeMap::new();
    for node in machine.nodes.iter().filter(has_none) {
        let nearest = nearest_memory(machine, node.id);
        nodes_by_nearest.entry(nearest.iter().collect()).or_default().insert(node.id);
    }
    let parts = nodes_by_nearest.iter().map(|(nearest, nodes)| {
        let nearest: NodeSet = nearest.iter().copied().collect();
        format!("node {} (nearest memory: node {})", list(nodes), list(&nearest))
    });
    let parts: Vec<String> = parts.collect();
    let is_known = machine.memory_bytes() > 0 && !parts.is_empty();
    is_known.then(|| format!("CPUs without local memory: {}.", parts.join("; ")))
}

/// Returns the nodes with cpus and memory at the smallest distance, or with memory if none has both.
fn nearest_memory(machine: &Machine, from: NodeId) -> NodeSet {
    let all = machine.memory_nodes();
    let with_cpus = all.intersection(&machine.cpu_nodes());
    let nodes = if with_cpus.is_empty() { all } else { with_cpus };
    let distance = |to: &NodeId| machine.distance(from, *to).unwrap_or(u8::MAX);
    let least = nodes.iter().map(|to| distance(&to)).min();
    nodes.iter().filter(|to| Some(distance(to)) == least).collect()
}

/// Names nodes of memory without cpus, which automatic choices leave out; nodes that only lack
/// online cpus are listed separately.
fn without_cpus(machine: &Machine) -> Option<String> {
    let nodes = machine.memory_nodes().difference(&machine.cpu_nodes());
    if nodes.is_empty() || machine.cpu_nodes().is_empty() {
        return None;
    }
    let of = |is: fn(&Node) -> bool| -> NodeSet {
        nodes.iter().filter(|id| machine.node(*id).is_some_and(is)).collect()
    };
    let parts = [
        (without_any_cpus(machine), of(|node| node.cpus.is_empty() && !node.memory_unknown)),
        // Some of these are empty on machines that reserve nodes.
        (
            "Without cpus, memory unknown".to_owned(),
            of(|node| node.cpus.is_empty() && node.memory_unknown),
        ),
        ("Memory of offline cpus".to_owned(), of(|node| !node.cpus.is_empty())),
    ];
    let parts = parts.into_iter().filter(|(_, nodes)| !nodes.is_empty());
    let parts: Vec<String> =
        parts.map(|(what, nodes)| format!("{what}: node {}", list(&nodes))).collect();
    let parts = parts.join(". ");
    Some(match (machine.memory_nodes() == nodes, nodes.len()) {
        (true, _) => format!("{parts}; there is no other memory, so --numa=auto takes it."),
        (false, 1) => format!("{parts}; --numa=auto leaves it out."),
        (false, _) => format!("{parts}; --numa=auto leaves them out."),
    })
}

/// Describes memory without cpus, which may be the memory of cpus whose node is unknown: those of a
/// list that cannot be read, or offline ones in a copied tree without links.
fn without_any_cpus(machine: &Machine) -> String {
    let is_lost = |cpu: &&Cpu| cpu.node.is_none();
    let lost: CpuSet = machine.cpus.iter().filter(is_lost).map(|cpu| cpu.id).collect();
    match lost.is_empty() {
        true => "Memory without cpus, of a device or another tier".to_owned(),
        false => format!("Memory without known cpus (cpus {lost} are on no known node)"),
    }
}

/// States that no node has reserved huge pages, with the page sizes of the pools, if the source
/// describes pools.
fn no_pools(machine: &Machine) -> Option<String> {
    let pools = || machine.nodes.iter().flat_map(|node| &node.huge_pages);
    let mut sizes: Vec<u64> = pools().map(|pool| pool.page_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let sizes: Vec<String> = sizes.into_iter().map(size).collect();
    let is_empty = !sizes.is_empty() && pools().all(|pool| pool.total == 0);
    is_empty.then(|| format!("No huge pages are reserved; their sizes are {}.", sizes.join(", ")))
}

/// Names the nodes of the allowed cpus from which the process may not take memory; empty if there
/// are none.
pub(super) fn forbidden_local(machine: &Machine) -> String {
    match machine.forbidden_local_nodes() {
        forbidden if forbidden.is_empty() => String::new(),
        forbidden => {
            format!("; memory of node {}, local to these cpus, is not allowed", list(&forbidden))
        }
    }
}
