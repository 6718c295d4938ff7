//! A machine as `numactl --hardware` prints it.

use std::fmt::Write as _;

use numalab_topology::{Machine, NodeSet};

use super::words::MIB;

/// Writes a machine as `numactl --hardware` prints it.
pub fn write(machine: &Machine) -> String {
    let online = machine.online_cpus();
    let nodes: Vec<_> = machine.nodes.iter().filter(|node| node.online).collect();
    let ids: NodeSet = nodes.iter().map(|node| node.id).collect();
    let mut text = format!("available: {} nodes ({})\n", nodes.len(), list(&ids));
    for node in &nodes {
        let id = node.id;
        let _ = write!(text, "node {id} cpus:");
        for cpu in node.cpus.intersection(&online).iter() {
            let _ = write!(text, " {cpu}");
        }
        let _ = match node.memory_unknown {
            true => writeln!(text, "\nnode {id} size: <not available>"),
            false => writeln!(text, "\nnode {id} size: {} MB", node.memory_bytes / MIB),
        };
        if let Some(free) = node.free_bytes {
            let _ = writeln!(text, "node {id} free: {} MB", free / MIB);
        }
    }
    let known = |from, to| machine.distance(from, to).map(|distance| distance.to_string());
    if ids.iter().any(|from| ids.iter().any(|to| known(from, to).is_none())) {
        text.push_str("No distance information available.\n");
        return text;
    }
    text.push_str("node distances:\nnode ");
    for id in ids.iter() {
        let _ = write!(text, "{id:>3} ");
    }
    text.push('\n');
    for from in ids.iter() {
        let _ = write!(text, "{from:>3}: ");
        for to in ids.iter() {
            let _ = write!(text, "{:>3} ", known(from, to).unwrap_or_default());
        }
        text.push('\n');
    }
    text
}

/// Formats a set in libnuma's form (`dump_node_list`): two consecutive numbers are also a range.
fn list(ids: &NodeSet) -> String {
    let ids: Vec<u32> = ids.iter().map(|id| id.0).collect();
    let ranges = ids.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        _ => run[0].to_string(),
    });
    ranges.collect::<Vec<_>>().join(",")
}
