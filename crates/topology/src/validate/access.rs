//! Validation of access attributes, separately and against the distances.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::access::{AccessAttributes, AccessClass};
use crate::finding::Findings;
use crate::id_set::NodeSet;
use crate::machine::Machine;

pub(super) fn check(machine: &Machine, findings: &mut Findings) {
    let cpu_nodes = machine.cpu_nodes();
    for access in &machine.access {
        check_nodes(machine, findings, access, &cpu_nodes);
    }
    let mut known: Vec<KnownAccess> =
        machine.access.iter().filter_map(|access| KnownAccess::of(machine, access)).collect();
    known.sort_by_key(|known| (known.access.initiator, known.access.class, known.distance));
    let same = |a: &KnownAccess, b: &KnownAccess| {
        a.access.initiator == b.access.initiator && a.access.class == b.access.class
    };
    for targets in known.chunk_by(same) {
        check_order(targets, findings);
    }
}

/// Attributes with known distance and read latency.
struct KnownAccess<'m> {
    access: &'m AccessAttributes,
    distance: u8,
    read_ps: u64,
}

impl<'m> KnownAccess<'m> {
    fn of(machine: &Machine, access: &'m AccessAttributes) -> Option<Self> {
        Some(Self {
            access,
            distance: machine.cost_distance(access.initiator, access.target)?,
            read_ps: access.read_latency_ps?,
        })
    }
}

/// Checks the targets of one initiator in order of distance: none may be slower than one that is
/// farther away.
fn check_order(targets: &[KnownAccess<'_>], findings: &mut Findings) {
    let mut slowest: Option<&KnownAccess<'_>> = None;
    for group in targets.chunk_by(|a, b| a.distance == b.distance) {
        for far in group {
            if let Some(near) = slowest.filter(|near| near.read_ps > far.read_ps) {
                report(near, far, findings);
            }
        }
        slowest = slowest.into_iter().chain(group).max_by_key(|known| known.read_ps);
    }
}

fn report(near: &KnownAccess<'_>, far: &KnownAccess<'_>, findings: &mut Findings) {
    let (code, nearness) = if near.access.target == near.access.initiator {
        ("access-local-slower", "is local")
    } else {
        ("access-order", "is nearer")
    };
    let message = format!(
        "{nearness}, but reads take {} ps, longer than the {} ps to node {}",
        near.read_ps, far.read_ps, far.access.target
    );
    findings.warning(code, place(near.access), message);
}

fn check_nodes(
    machine: &Machine,
    findings: &mut Findings,
    access: &AccessAttributes,
    cpu_nodes: &NodeSet,
) {
    for id in [access.initiator, access.target] {
        if machine.node(id).is_none() {
            let message = format!("refers to node {id}, which does not exist");
            findings.error("access-node-unknown", place(access), message);
        }
    }
    if access.class == AccessClass::Cpu && !cpu_nodes.contains(access.initiator) {
        let message = "describes accesses of cpus, but the initiator has none online";
        findings.warning("access-initiator-cpu-less", place(access), message);
    }
}

fn place(access: &AccessAttributes) -> String {
    format!("access {} to {}", access.initiator, access.target)
}
