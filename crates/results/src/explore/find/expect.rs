//! Expectations about memory placement (`--expect`), and those not met.

use std::str::FromStr;

use numalab_record::explore::{
    BytesByNode, GuestView, GuestsView, ProcessView, VcpuView, View, spread,
};
use numalab_topology::{NodeId, NodeSet};

/// Share of a pinned guest's memory that may be remote to its vCPUs: the memory of QEMU
/// itself and its firmware.
const PINNED_REMOTE: f64 = 0.05;

/// An expected placement. Shares are 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub enum Expectation {
    /// At least this share of a process's private memory, or of each guest's memory, is on these
    /// nodes.
    OnNodes {
        nodes: NodeSet,
        /// The minimum share on these nodes.
        least: f64,
    },
    /// At least this share of the memory that threads or vCPUs touch is local to them.
    Local {
        /// The minimum local share.
        least: f64,
    },
    /// Every vCPU may run only on the cpus of the node that holds its memory.
    Pinned,
}

impl FromStr for Expectation {
    type Err = String;

    /// Reads `node1>=95%`, `node0,1>=95%`, `threads local>=90%` or `pinned`.
    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "`{text}` is not an expectation: expected node1>=95%, threads local>=90% or pinned"
            )
        };
        let text = text.trim();
        if text == "pinned" {
            return Ok(Self::Pinned);
        }
        let (of, share) = text.split_once(">=").ok_or_else(expected)?;
        let percent = share.trim().strip_suffix('%').and_then(|share| share.trim().parse().ok());
        let least = percent.map(|percent: f64| percent / 100.0);
        let least = least.filter(|share| (0.0..=1.0).contains(share)).ok_or_else(expected)?;
        let of = of.trim();
        if matches!(of, "threads local" | "local") {
            return Ok(Self::Local { least });
        }
        let nodes = of.strip_prefix("nodes").or_else(|| of.strip_prefix("node"));
        let nodes: NodeSet =
            nodes.and_then(|nodes| nodes.trim().parse().ok()).ok_or_else(expected)?;
        if nodes.is_empty() { Err(expected()) } else { Ok(Self::OnNodes { nodes, least }) }
    }
}

/// An expectation that is not met.
#[derive(Clone, Debug, PartialEq)]
pub enum Unmet {
    /// Too little memory is on the nodes.
    Elsewhere {
        /// The guest that owns the memory; `None` for the process.
        guest: Option<String>,
        nodes: NodeSet,
        /// The share on the nodes; `None` if there is no memory.
        share: Option<f64>,
        least: f64,
        /// The node with most of the memory and its share, if there is any.
        most: Option<(NodeId, f64)>,
    },
    /// Too little of the touched memory is local.
    Remote {
        /// The guest that touches it; `None` for the process.
        guest: Option<String>,
        /// The local share; `None` if unknown.
        share: Option<f64>,
        least: f64,
    },
    /// Virtual cpus of a guest may run on several nodes.
    Unpinned {
        guest: String,
        /// The vCPUs concerned.
        vcpus: Vec<u32>,
    },
    /// There is no guest to check.
    NoGuests,
    /// The view (nodes, heap dumps) has no memory to which this applies.
    NotOfThis,
}

/// Returns the expectations that a view does not meet.
pub fn unmet(view: &View, expected: &[Expectation]) -> Vec<Unmet> {
    match view {
        View::Process(view) => expected.iter().filter_map(|one| of_process(view, one)).collect(),
        View::Guests(view) if view.guests.is_empty() && !expected.is_empty() => {
            vec![Unmet::NoGuests]
        }
        View::Guests(view) => {
            let of = |one| view.guests.iter().filter_map(move |guest| of_guest(view, guest, one));
            expected.iter().flat_map(of).collect()
        }
        View::Nodes(_) | View::Ranks(_) | View::Heap(_) => {
            expected.iter().map(|_| Unmet::NotOfThis).collect()
        }
    }
}

fn of_process(view: &ProcessView, expected: &Expectation) -> Option<Unmet> {
    match expected {
        Expectation::OnNodes { nodes, least } => {
            elsewhere(None, &view.own_bytes_by_node, nodes, *least)
        }
        Expectation::Local { least } => remote(None, view.remote_share, *least),
        Expectation::Pinned => Some(Unmet::NotOfThis),
    }
}

fn of_guest(view: &GuestsView, guest: &GuestView, expected: &Expectation) -> Option<Unmet> {
    let name = || Some(guest.name.clone());
    match expected {
        Expectation::OnNodes { nodes, least } => {
            elsewhere(name(), &guest.bytes_by_node, nodes, *least)
        }
        Expectation::Local { least } => remote(name(), guest.remote_share, *least),
        Expectation::Pinned => unpinned(view, guest)
            .or_else(|| remote(name(), guest.remote_share, 1.0 - PINNED_REMOTE)),
    }
}

fn elsewhere(
    guest: Option<String>,
    bytes: &BytesByNode,
    nodes: &NodeSet,
    least: f64,
) -> Option<Unmet> {
    let share = spread::share_on(bytes, nodes);
    let (nodes, most) = (nodes.clone(), spread::most(bytes));
    let is_met = share.is_some_and(|share| share >= least);
    (!is_met).then_some(Unmet::Elsewhere { guest, nodes, share, least, most })
}

fn remote(guest: Option<String>, remote_share: Option<f64>, least: f64) -> Option<Unmet> {
    let share = remote_share.map(|share| 1.0 - share);
    let is_met = share.is_some_and(|share| share >= least);
    (!is_met).then_some(Unmet::Remote { guest, share, least })
}

fn unpinned(view: &GuestsView, guest: &GuestView) -> Option<Unmet> {
    let is_pinned = |vcpu: &VcpuView| {
        let within = |cpus| vcpu.allowed.as_ref().is_some_and(|allowed| allowed.is_subset(cpus));
        view.cpus_by_node.values().any(within)
    };
    let loose = guest.vcpus.iter().filter(|vcpu| !is_pinned(vcpu));
    let vcpus: Vec<u32> = loose.map(|vcpu| vcpu.index).collect();
    (!vcpus.is_empty()).then(|| Unmet::Unpinned { guest: guest.name.clone(), vcpus })
}

#[cfg(test)]
mod tests {
    use super::*;
    use numalab_record::explore::Hypervisor;
    use numalab_topology::{CpuId, CpuSet};
    use std::collections::BTreeMap;

    fn cpus(list: [u32; 2]) -> CpuSet {
        list.into_iter().map(CpuId).collect()
    }

    fn guests(allowed: CpuSet, remote_share: f64) -> View {
        let vcpu = VcpuView { index: 3, allowed: Some(allowed), ..VcpuView::default() };
        View::Guests(GuestsView {
            guests: vec![GuestView {
                hypervisor: Hypervisor::Qemu,
                name: "vm".into(),
                number: 1,
                vcpus: vec![vcpu],
                memory: Vec::new(),
                bytes_by_node: BTreeMap::from([(NodeId(0), 90), (NodeId(1), 10)]),
                remote_share: Some(remote_share),
                control: None,
            }],
            cpus_by_node: BTreeMap::from([(NodeId(0), cpus([0, 1])), (NodeId(1), cpus([2, 3]))]),
            room_by_node: BTreeMap::new(),
            unseen: Vec::new(),
        })
    }

    #[test]
    fn a_guest_is_pinned_if_its_vcpus_stay_on_one_node_with_its_memory() {
        let pinned = [Expectation::Pinned];
        assert_eq!(unmet(&guests(cpus([0, 1]), 0.02), &pinned), []);
        let loose = Unmet::Unpinned { guest: "vm".into(), vcpus: vec![3] };
        assert_eq!(unmet(&guests(cpus([1, 2]), 0.0), &pinned), [loose]);
        let apart = Unmet::Remote { guest: Some("vm".into()), share: Some(0.5), least: 0.95 };
        assert_eq!(unmet(&guests(cpus([0, 1]), 0.5), &pinned), [apart]);
        let none = View::Guests(GuestsView::default());
        assert_eq!(unmet(&none, &pinned), [Unmet::NoGuests]);
    }

    #[test]
    fn shares_on_nodes_are_compared_and_the_largest_is_named() {
        let on = |node, least| Expectation::OnNodes { nodes: NodeSet::from_iter([node]), least };
        let view = guests(cpus([0, 1]), 0.0);
        assert_eq!(unmet(&view, &[on(NodeId(0), 0.9)]), []);
        let found = unmet(&view, &[on(NodeId(1), 0.95)]);
        let nodes = NodeSet::from_iter([NodeId(1)]);
        let (share, most) = (Some(0.1), Some((NodeId(0), 0.9)));
        let guest = Some("vm".into());
        assert_eq!(found, [Unmet::Elsewhere { guest, nodes, share, least: 0.95, most }]);
    }
}
