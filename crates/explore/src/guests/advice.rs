//! What is wrong with a guest's placement, by rules.

use numalab_topology::{Machine, NodeId, NodeSet};

use super::{GuestView, Hypervisor, VcpuView};
use crate::finding::Finding;
use crate::spread::{self, percent};

/// A virtual cpu is called remote if so much of its memory is elsewhere.
const MOSTLY: f64 = 0.5;

pub(super) fn findings(guest: &GuestView, machine: &Machine) -> Vec<Finding> {
    let remote: Vec<&VcpuView> = guest
        .vcpus
        .iter()
        .filter(|vcpu| vcpu.remote_share.is_some_and(|share| share >= MOSTLY))
        .collect();
    let (Some(first), Some((home, on_home))) = (remote.first(), spread::most(&guest.bytes_by_node))
    else {
        return Vec::new();
    };
    // The first domain of Xen serves all the others from everywhere.
    if guest.hypervisor == Hypervisor::Xen && guest.number == 0 {
        return Vec::new();
    }
    let nodes: NodeSet = remote.iter().filter_map(|vcpu| vcpu.node).collect();
    let who = match remote.as_slice() {
        [only] => format!("vcpu {} runs", only.index),
        many => format!("{} of its {} vcpus run", many.len(), guest.vcpus.len()),
    };
    let where_ = if nodes.len() == 1 { "node" } else { "nodes" };
    let by_node = first.guest_node.is_some() && guest.memory.len() > 1;
    let what = if by_node { "the memory of their guest node" } else { "the guest's memory" };
    let share = if by_node { first.remote_share.unwrap_or(on_home) } else { on_home };
    let place = if by_node { "elsewhere".to_owned() } else { format!("on node {home}") };
    let sentence = format!(
        "guest {}: {who} on {where_} {nodes}; {} of {what} lies {place}",
        guest.name,
        percent(share)
    );
    let finding = match guest.hypervisor {
        Hypervisor::Qemu => Finding::wrong(sentence, mend_qemu(guest, machine, home, &remote)),
        Hypervisor::Xen => xen_finding(guest, sentence, home, &remote),
    };
    vec![finding]
}

fn mend_qemu(guest: &GuestView, machine: &Machine, home: NodeId, remote: &[&VcpuView]) -> String {
    let cpus_of = |node: NodeId| machine.node(node).map(|node| node.cpus.to_string());
    let home_of = |vcpu: &VcpuView| {
        let own = guest.memory.iter().find(|memory| memory.guest_node == vcpu.guest_node);
        let own = own.filter(|_| vcpu.guest_node.is_some());
        own.and_then(|memory| spread::most(&memory.bytes_by_node)).map_or(home, |(node, _)| node)
    };
    if let Some(control) = &guest.control {
        let pin = |vcpu: &&VcpuView| Some(format!("{}={}", vcpu.index, cpus_of(home_of(vcpu))?));
        let map: Vec<String> = remote.iter().filter_map(pin).collect();
        return format!("numalab guest pin --qmp {control} --map '{}'", map.join(";"));
    }
    match (cpus_of(home).filter(|cpus| !cpus.is_empty()), remote) {
        (Some(cpus), [VcpuView { thread: Some(thread), .. }]) => {
            format!("taskset -cp {cpus} {thread}")
        }
        (Some(cpus), _) => format!("taskset -acp {cpus} {}", guest.number),
        (None, _) => format!("migratepages {} {home} NODE", guest.number),
    }
}

/// libxl places a domain's memory without regard to `cpus = "…"` (a string) since 2018: its
/// placement then shows as a soft affinity to other cpus than the hard one.
fn xen_finding(guest: &GuestView, sentence: String, home: NodeId, remote: &[&VcpuView]) -> Finding {
    let apart = remote.iter().find_map(|vcpu| {
        let (hard, soft) = (vcpu.allowed.as_ref()?, vcpu.preferred.as_ref()?);
        hard.intersection(soft).is_empty().then(|| hard.to_string())
    });
    match apart {
        Some(hard) => Finding::wrong(
            format!("{sentence}: with cpus as a string libxl places memory without looking at it"),
            format!(
                "in its configuration: cpus = [\"{hard}\"] (a list), then xl destroy {0} and xl create",
                guest.name
            ),
        ),
        None if remote.iter().all(|vcpu| vcpu.allowed.is_none()) => {
            Finding::wrong(sentence, format!("xl vcpu-pin {} all node:{home}", guest.name))
        }
        None => Finding::wrong(
            sentence,
            format!(
                "xl vcpu-pin {} all node:{home}, or create it anew with cpus = [\"node:N\"] (Xen does not move memory)",
                guest.name
            ),
        ),
    }
}
