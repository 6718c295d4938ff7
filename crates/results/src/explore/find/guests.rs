//! Rules for problems of guest placement.

use std::collections::BTreeMap;

use numalab_record::explore::{BytesByNode, GuestView, GuestsView, Hypervisor, VcpuView, spread};
use numalab_topology::{CpuSet, NodeId, NodeSet};
use serde::Serialize;

use super::process::MOSTLY;
use super::process::apart::GAIN;
use super::room::has_room;
use super::{ExploreFinding, JudgedProblem, Obstacle, Problem, ProblemPlace, Remedy};
use crate::Finding;

/// A problem of a guest's placement. Shares are 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum GuestProblem {
    /// Virtual cpus run away from their guest's memory.
    VcpusRemote {
        /// The guest's name.
        guest: String,
        /// Total number of its vCPUs.
        vcpus: usize,
        /// The nodes on which the remote ones run.
        nodes: NodeSet,
        /// The node with most of the guest's memory; `None` if each vCPU was compared with
        /// its own guest node's memory.
        home: Option<NodeId>,
        /// The share of the memory on `home`, or the remote share without it.
        share: f64,
        /// True if the Xen guest has its cpus as a string, which libxl ignores when it places
        /// memory.
        cpus_as_string: bool,
    },
}

pub(super) fn findings(view: &GuestsView) -> Vec<ExploreFinding> {
    view.guests.iter().filter_map(|guest| remote_vcpus(view, guest)).collect()
}

fn remote_vcpus(view: &GuestsView, guest: &GuestView) -> Option<ExploreFinding> {
    // Xen's Dom0 serves all other domains from any node.
    if guest.hypervisor == Hypervisor::Xen && guest.number == 0 {
        return None;
    }
    let is_remote = |vcpu: &&VcpuView| {
        let gains = |share| on_home(guest, vcpu) - (1.0 - share) >= GAIN;
        vcpu.remote_share.is_some_and(|share| share >= MOSTLY && gains(share))
    };
    let remote: Vec<&VcpuView> = guest.vcpus.iter().filter(is_remote).collect();
    let first = remote.first()?;
    let (home, on_home) = spread::most(&guest.bytes_by_node)?;
    let by_guest_node = first.guest_node.is_some() && guest.memory.len() > 1;
    let listed = apart_from_preferred(guest, &remote);
    let nodes: NodeSet = remote.iter().filter_map(|vcpu| vcpu.node).collect();
    let problem = GuestProblem::VcpusRemote {
        guest: guest.name.clone(),
        vcpus: guest.vcpus.len(),
        nodes,
        home: (!by_guest_node).then_some(home),
        share: first.remote_share.filter(|_| by_guest_node).unwrap_or(on_home),
        cpus_as_string: listed.is_some(),
    };
    let remedy = match (guest.hypervisor, listed) {
        (Hypervisor::Qemu, _) => of_qemu(view, guest, home, &remote),
        (Hypervisor::Xen, Some(cpus)) => Ok(Remedy::ListCpus { guest: guest.name.clone(), cpus }),
        (Hypervisor::Xen, None) => {
            has_cpus_for(view, home, guest.vcpus.len()).map(|_| Remedy::PinDomain {
                guest: guest.name.clone(),
                node: home,
                is_pinned: remote.iter().any(|vcpu| vcpu.allowed.is_some()),
            })
        }
    };
    let vcpus = remote.iter().map(|vcpu| ProblemPlace::Vcpu(vcpu.index)).collect();
    let advice = JudgedProblem::wrong_if(Problem::Guest(problem), remedy);
    Some(Finding::new(advice).over(MOSTLY).shown_by(vcpus))
}

/// Returns the memory of a vCPU's guest node, or that of the guest.
fn memory_of<'a>(guest: &'a GuestView, vcpu: &VcpuView) -> &'a BytesByNode {
    let own = guest.memory.iter().find(|memory| memory.guest_node == vcpu.guest_node);
    let own = own.filter(|_| vcpu.guest_node.is_some());
    own.map_or(&guest.bytes_by_node, |memory| &memory.bytes_by_node)
}

fn on_home(guest: &GuestView, vcpu: &VcpuView) -> f64 {
    spread::most(memory_of(guest, vcpu)).map_or(0.0, |(_, share)| share)
}

/// Returns the cpus of a node if they are enough for this number of vCPUs; empty for a node
/// without cpus.
fn has_cpus_for(view: &GuestsView, node: NodeId, vcpus: usize) -> Result<CpuSet, Obstacle> {
    let cpus = view.cpus_by_node.get(&node).cloned().unwrap_or_default();
    match cpus.is_empty() || vcpus <= cpus.len() {
        true => Ok(cpus),
        false => Err(Obstacle::FewCpus { node, cpus: cpus.len(), vcpus }),
    }
}

fn of_qemu(
    view: &GuestsView,
    guest: &GuestView,
    home: NodeId,
    remote: &[&VcpuView],
) -> Result<Remedy, Obstacle> {
    if let Some(socket) = &guest.control {
        let mut homes: BTreeMap<NodeId, Vec<u32>> = BTreeMap::new();
        for vcpu in remote {
            let own = spread::most(memory_of(guest, vcpu)).map_or(home, |(node, _)| node);
            homes.entry(own).or_default().push(vcpu.index);
        }
        let mut map = Vec::new();
        for (node, vcpus) in homes {
            let cpus = has_cpus_for(view, node, vcpus.len())?;
            map.extend(vcpus.into_iter().map(|index| (index, cpus.clone())));
        }
        map.retain(|(_, cpus)| !cpus.is_empty());
        map.sort_by_key(|(index, _)| *index);
        return Ok(Remedy::PinVcpus { socket: socket.clone(), map });
    }
    if let [VcpuView { thread: Some(thread), .. }] = remote {
        let cpus = has_cpus_for(view, home, 1)?;
        if !cpus.is_empty() {
            return Ok(Remedy::MoveThreads { number: *thread, all: false, cpus });
        }
    }
    let cpus = has_cpus_for(view, home, guest.vcpus.len())?;
    match cpus.is_empty() {
        false => Ok(Remedy::MoveThreads { number: guest.number, all: true, cpus }),
        true => memory_to(view, guest, home, remote),
    }
}

/// Moves the memory on a node without cpus to the node where vCPUs run.
fn memory_to(
    view: &GuestsView,
    guest: &GuestView,
    home: NodeId,
    remote: &[&VcpuView],
) -> Result<Remedy, Obstacle> {
    let to = remote.iter().find_map(|vcpu| vcpu.node);
    let bytes = guest.bytes_by_node.get(&home).copied().unwrap_or(0);
    if let Some(node) = to {
        has_room(&view.room_by_node, node, bytes)?;
    }
    let from = NodeSet::from_iter([home]);
    Ok(Remedy::MovePages { process: guest.number, from, to })
}

/// Detects that libxl (since 2018) ignored `cpus = "…"` (a string) when it placed a domain's
/// memory: the placement shows as a soft affinity that differs from the hard one.
fn apart_from_preferred(guest: &GuestView, remote: &[&VcpuView]) -> Option<CpuSet> {
    if guest.hypervisor != Hypervisor::Xen {
        return None;
    }
    remote.iter().find_map(|vcpu| {
        let (hard, soft) = (vcpu.allowed.as_ref()?, vcpu.preferred.as_ref()?);
        hard.intersection(soft).is_empty().then(|| hard.clone())
    })
}
