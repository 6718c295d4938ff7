//! Rules for problems of guest placement.

use numalab_record::explore::{GuestView, GuestsView, Hypervisor, VcpuView, spread};
use numalab_topology::{CpuSet, NodeId, NodeSet};
use serde::Serialize;

use super::process::MOSTLY;
use super::{Advice, ExploreFinding, Place, Problem, Remedy};
use crate::Finding;

/// A problem of a guest's placement. Shares are 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum GuestProblem {
    /// Virtual cpus run away from their guest's memory.
    VcpusRemote {
        /// The guest's name.
        guest: String,
        /// Number of all its virtual cpus.
        vcpus: usize,
        /// The nodes on which the remote ones run.
        nodes: NodeSet,
        /// The node with most of the guest's memory; `None` if each virtual cpu was compared with
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
    let is_remote = |vcpu: &&VcpuView| vcpu.remote_share.is_some_and(|share| share >= MOSTLY);
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
        (Hypervisor::Xen, Some(cpus)) => Remedy::ListCpus { guest: guest.name.clone(), cpus },
        (Hypervisor::Xen, None) => Remedy::PinDomain {
            guest: guest.name.clone(),
            node: home,
            is_pinned: remote.iter().any(|vcpu| vcpu.allowed.is_some()),
        },
    };
    let vcpus = remote.iter().map(|vcpu| Place::Vcpu(vcpu.index)).collect();
    Some(Finding::new(Advice::wrong(Problem::Guest(problem), remedy)).over(MOSTLY).shown_by(vcpus))
}

fn of_qemu(view: &GuestsView, guest: &GuestView, home: NodeId, remote: &[&VcpuView]) -> Remedy {
    let home_of = |vcpu: &VcpuView| {
        let own = guest.memory.iter().find(|memory| memory.guest_node == vcpu.guest_node);
        let own = own.filter(|_| vcpu.guest_node.is_some());
        own.and_then(|memory| spread::most(&memory.bytes_by_node)).map_or(home, |(node, _)| node)
    };
    let cpus_of = |node: NodeId| view.cpus_by_node.get(&node).cloned();
    if let Some(socket) = &guest.control {
        let pin = |vcpu: &&VcpuView| Some((vcpu.index, cpus_of(home_of(vcpu))?));
        let map = remote.iter().filter_map(pin).collect();
        return Remedy::PinVcpus { socket: socket.clone(), map };
    }
    match (cpus_of(home).filter(|cpus| !cpus.is_empty()), remote) {
        (Some(cpus), [VcpuView { thread: Some(thread), .. }]) => {
            Remedy::MoveThreads { number: *thread, all: false, cpus }
        }
        (Some(cpus), _) => Remedy::MoveThreads { number: guest.number, all: true, cpus },
        (None, _) => {
            let from = NodeSet::from_iter([home]);
            Remedy::MovePages { process: guest.number, from, to: None }
        }
    }
}

/// Detects that libxl (since 2018) placed a domain's memory without regard to `cpus = "…"` (a
/// string): the placement shows as a soft affinity that differs from the hard one.
fn apart_from_preferred(guest: &GuestView, remote: &[&VcpuView]) -> Option<CpuSet> {
    if guest.hypervisor != Hypervisor::Xen {
        return None;
    }
    remote.iter().find_map(|vcpu| {
        let (hard, soft) = (vcpu.allowed.as_ref()?, vcpu.preferred.as_ref()?);
        hard.intersection(soft).is_empty().then(|| hard.clone())
    })
}
