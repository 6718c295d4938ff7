//! Validation of nodes and cpus: order, membership, groups that span nodes.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use crate::finding::{Findings, Severity};
use crate::id_set::NodeSet;
use crate::machine::{CpuGroup, Machine};
use crate::node::Node;

pub(super) fn check(machine: &Machine, findings: &mut Findings) {
    check_order(machine, findings);
    check_nodes(machine, findings);
    check_cpus(machine, findings);
    check_l3_groups(machine, findings);
    for group in spanning(machine, machine.cores()) {
        let message =
            format!("its cpus {} are on nodes {}, expected one node", group.0.cpus, group.1);
        findings.error("core-spans-nodes", format!("core {}", group.0.number), message);
    }
    check_cores_in_packages(machine, findings);
}

/// Reports one finding for all L3 groups on several nodes: firmware divides all packages alike.
fn check_l3_groups(machine: &Machine, findings: &mut Findings) {
    let mut groups = spanning(machine, machine.l3_groups());
    let Some((first, nodes)) = groups.next() else { return };
    let others = match groups.count() {
        0 => String::new(),
        1 => "; 1 other group is like it".to_string(),
        others => format!("; {others} other groups are like it"),
    };
    let message = format!(
        "its cpus {} are on nodes {nodes}, so its cache is shared across them{others}",
        first.cpus
    );
    let place = format!("L3 group {}", first.number);
    findings.add(Severity::Note, "l3-group-spans-nodes", place, message);
}

/// Reports one finding for all cores with cpus of several packages.
fn check_cores_in_packages(machine: &Machine, findings: &mut Findings) {
    let package_of = |id| machine.cpu(id).and_then(|cpu| cpu.package);
    let spans = |group: &CpuGroup| {
        let mut packages = group.cpus.iter().filter_map(package_of);
        packages.next().is_some_and(|first| packages.any(|package| package != first))
    };
    let cores: Vec<CpuGroup> = machine.cores().into_iter().filter(spans).collect();
    let Some(first) = cores.first() else { return };
    let message = format!(
        "{} cores have cpus of several packages, such as cpus {}; expected one package",
        cores.len(),
        first.cpus
    );
    findings.warning("core-spans-packages", "packages", message);
}

fn check_order(machine: &Machine, findings: &mut Findings) {
    for pair in machine.nodes.windows(2) {
        if pair[0].id >= pair[1].id {
            let message = format!("follows node {}, expected ascending ids", pair[0].id);
            findings.error("nodes-unordered", format!("node {}", pair[1].id), message);
        }
    }
    for pair in machine.cpus.windows(2) {
        if pair[0].id >= pair[1].id {
            let message = format!("follows cpu {}, expected ascending ids", pair[0].id);
            findings.error("cpus-unordered", format!("cpu {}", pair[1].id), message);
        }
    }
}

/// Reports one finding for all empty nodes, because machines with GPU memory have dozens.
fn check_empty_nodes(machine: &Machine, findings: &mut Findings) {
    let is_empty = |node: &&Node| node.cpus.is_empty() && !node.may_have_memory();
    let empty: NodeSet = machine.nodes.iter().filter(is_empty).map(|node| node.id).collect();
    let (place, message) = match empty.len() {
        0 => return,
        1 => (format!("node {empty}"), "has neither cpus nor memory"),
        _ => (format!("nodes {empty}"), "have neither cpus nor memory"),
    };
    findings.warning("node-empty", place, message);
}

fn check_nodes(machine: &Machine, findings: &mut Findings) {
    check_empty_nodes(machine, findings);
    for node in &machine.nodes {
        if machine.first_with_cpus_of(node).is_some() {
            continue;
        }
        let place = format!("node {}", node.id);
        for id in node.cpus.iter() {
            let message = match machine.cpu(id) {
                None => format!("lists cpu {id}, which the machine does not have"),
                Some(cpu) if cpu.node == Some(node.id) => continue,
                Some(cpu) => {
                    let named = cpu.node.map_or("none".to_string(), |node| node.to_string());
                    format!("lists cpu {id}, which is on node {named}")
                }
            };
            findings.error("cpu-node-disagrees", &place, message);
        }
    }
}

fn check_cpus(machine: &Machine, findings: &mut Findings) {
    for cpu in &machine.cpus {
        let place = format!("cpu {}", cpu.id);
        let Some(id) = cpu.node else {
            if cpu.online && !machine.nodes.is_empty() {
                findings.warning("cpu-without-node", place, "is online, but on no node");
            }
            continue;
        };
        let listed = machine.node(id).is_some_and(|node| node.cpus.contains(cpu.id));
        if !listed {
            let message = format!("is on node {id}, which does not list it");
            findings.error("cpu-node-disagrees", place, message);
        }
    }
}

/// Returns the groups with cpus on more than one node.
fn spanning(machine: &Machine, groups: Vec<CpuGroup>) -> impl Iterator<Item = (CpuGroup, NodeSet)> {
    groups.into_iter().filter_map(|group| {
        let node_of = |id| machine.cpu(id).and_then(|cpu| cpu.node);
        let nodes: NodeSet = group.cpus.iter().filter_map(node_of).collect();
        (nodes.len() > 1).then_some((group, nodes))
    })
}
