//! What the firmware says of accesses, and memory tiers.

use numalab_topology::{AccessAttributes, AccessClass, MAX_ID, MemoryTier, Node, NodeId};

use super::nodes;
use super::reader::Reader;

/// Reads `nodeN/access0` and `access1` of all nodes: one entry per linked initiator
/// (Linux `Documentation/admin-guide/mm/numaperf.rst`).
pub(super) fn attributes(reader: &mut Reader<'_>, nodes: &[Node]) -> Vec<AccessAttributes> {
    let mut attributes = Vec::new();
    for node in nodes {
        for (class, name) in [(AccessClass::Any, "access0"), (AccessClass::Cpu, "access1")] {
            let directory = format!("{}/{name}/initiators", nodes::directory(node.id));
            attributes.extend(of_class(reader, &directory, node.id, class));
        }
    }
    attributes
}

fn of_class(
    reader: &mut Reader<'_>,
    directory: &str,
    target: NodeId,
    class: AccessClass,
) -> Vec<AccessAttributes> {
    let initiators = reader.root.numbered(directory, "node");
    let mut figure = |name: &str| {
        let value = reader.number(&format!("{directory}/{name}"));
        value.filter(|&value| value > 0)
    };
    // The files give nanoseconds, and MB/s as HMAT has them.
    let picoseconds = |ns: Option<u64>| ns.and_then(|ns| ns.checked_mul(1000));
    let template = AccessAttributes {
        initiator: target,
        target,
        class,
        read_latency_ps: picoseconds(figure("read_latency")),
        write_latency_ps: picoseconds(figure("write_latency")),
        read_bandwidth_mb_per_s: figure("read_bandwidth"),
        write_bandwidth_mb_per_s: figure("write_bandwidth"),
    };
    let empty =
        AccessAttributes { initiator: target, target, class, ..AccessAttributes::default() };
    if template == empty {
        // Initiators are linked without figures too; distances say as much.
        return Vec::new();
    }
    initiators
        .into_iter()
        .filter(|&initiator| initiator <= MAX_ID)
        .map(|initiator| AccessAttributes { initiator: NodeId(initiator), ..template.clone() })
        .collect()
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
