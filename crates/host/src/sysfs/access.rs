//! The firmware's access attributes, and memory tiers.

use std::collections::BTreeMap;

use numalab_topology::{
    AccessAttributes, AccessClass, MAX_ID, Machine, MemoryTier, NodeId, NodeSet,
};

use super::nodes;
use super::reader::{NODE_DIRECTORY, Reader};

/// The longest latency that memory can have, in nanoseconds.
const LONGEST_NS: u64 = 20_000;
/// Upper bound on memory bandwidth, in MB/s: ten times that of the fastest GPU.
const MOST_MB_PER_S: u64 = 100_000_000;

/// Reads `nodeN/access0` and `access1` of all nodes: one entry per linked initiator (Linux
/// `Documentation/admin-guide/mm/numaperf.rst`). Figures without a link are attributed to the
/// nearest nodes with cpus, which is reported as a finding.
pub(super) fn attributes(reader: &mut Reader<'_>, machine: &Machine) -> Vec<AccessAttributes> {
    let mut attributes = Vec::new();
    let mut assumed: BTreeMap<NodeSet, NodeSet> = BTreeMap::new();
    for node in &machine.nodes {
        for (class, name) in [(AccessClass::Any, "access0"), (AccessClass::Cpu, "access1")] {
            let directory = format!("{}/{name}/initiators", nodes::directory(node.id));
            let Some(figures) = figures(reader, &directory, node.id, class) else { continue };
            let mut initiators = linked(reader, &directory, machine);
            if initiators.is_empty() {
                initiators = nearest_with_cpus(machine, node.id);
                assumed.entry(initiators.clone()).or_default().insert(node.id);
            }
            let of = |initiator| AccessAttributes { initiator, ..figures.clone() };
            attributes.extend(initiators.iter().map(of));
        }
    }
    for (initiators, targets) in assumed {
        let message = format!(
            "the access figures of node {targets} name no initiator: assumed to be from node \
             {initiators}, the nearest with cpus"
        );
        reader.note("access-without-initiator", NODE_DIRECTORY, message);
    }
    attributes
}

/// Returns the figures of a directory; `None` if it has none. Initiators are linked even without
/// figures, where the distances have the same content.
fn figures(
    reader: &mut Reader<'_>,
    directory: &str,
    target: NodeId,
    class: AccessClass,
) -> Option<AccessAttributes> {
    let mut figure = |name: &str| {
        let value = reader.number(&format!("{directory}/{name}")).filter(|&value| value > 0)?;
        let (what, unit, most) = match name.ends_with("latency") {
            true => ("latency", "ns", LONGEST_NS),
            false => ("bandwidth", "MB/s", MOST_MB_PER_S),
        };
        if value > most {
            let message = format!(
                "{value} {unit} is not a {what} of memory, expected at most {most}: the firmware may \
                 give it in another unit"
            );
            reader.warn("access-implausible", &format!("{directory}/{name}"), message);
        }
        Some(value)
    };
    // The files give nanoseconds, and MB/s as in HMAT.
    let picoseconds = |ns: Option<u64>| ns.and_then(|ns| ns.checked_mul(1000));
    let empty =
        AccessAttributes { initiator: target, target, class, ..AccessAttributes::default() };
    let figures = AccessAttributes {
        read_latency_ps: picoseconds(figure("read_latency")),
        write_latency_ps: picoseconds(figure("write_latency")),
        read_bandwidth_mb_per_s: figure("read_bandwidth"),
        write_bandwidth_mb_per_s: figure("write_bandwidth"),
        ..empty.clone()
    };
    (figures != empty).then_some(figures)
}

fn linked(reader: &mut Reader<'_>, directory: &str, machine: &Machine) -> NodeSet {
    let initiators = reader.root.numbered(directory, "node").into_iter();
    let initiators = initiators.filter(|&initiator| initiator <= MAX_ID).map(NodeId);
    let (known, unknown): (NodeSet, NodeSet) =
        initiators.partition(|initiator| machine.node(*initiator).is_some());
    if !unknown.is_empty() {
        let message =
            format!("nodes {unknown} are linked, but the machine has none of these: ignored");
        reader.warn("access-node-unknown", directory, message);
    }
    known
}

/// Returns the nodes with cpus at the smallest distance from `target`. The kernel computes the
/// figures of a CXL region that is added at run time from these; versions 6.9 to 6.17 link no
/// initiator (`cxl_region_update_coordinates` in `drivers/cxl/core/region.c`).
fn nearest_with_cpus(machine: &Machine, target: NodeId) -> NodeSet {
    let with_cpus = machine.cpu_nodes();
    if with_cpus.contains(target) {
        return NodeSet::from_iter([target]);
    }
    let distance = |&initiator: &NodeId| machine.distance(initiator, target).unwrap_or(u8::MAX);
    let least = with_cpus.iter().map(|initiator| distance(&initiator)).min();
    with_cpus.iter().filter(|initiator| Some(distance(initiator)) == least).collect()
}

/// Reads the memory tiers, fastest first
/// (Linux `Documentation/ABI/testing/sysfs-kernel-mm-memory-tiers`).
pub(super) fn tiers(reader: &mut Reader<'_>) -> Vec<MemoryTier> {
    let directory = "sys/devices/virtual/memory_tiering";
    let tiers = reader.root.numbered(directory, "memory_tier");
    tiers
        .into_iter()
        .filter_map(|id| {
            let nodes = reader.list(&format!("{directory}/memory_tier{id}/nodelist"))?;
            Some(MemoryTier { id, nodes })
        })
        .collect()
}
