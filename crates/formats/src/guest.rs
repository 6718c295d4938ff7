//! A machine as a hypervisor can give it to a guest.

use std::collections::BTreeMap;

use numalab_topology::{
    AccessAttributes, AccessClass, CpuId, CpuSet, Findings, Machine, NodeId, REMOTE_DISTANCE,
};

use crate::error::WriteError;
use crate::regular::{Ordered, Shape};

const MIB: u64 = 1 << 20;

/// Where a guest lies on its host, and on which pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostPlacement {
    /// The host node and cpus of every guest node, in order; empty leaves the choice
    /// to the host.
    pub nodes: Vec<HostNode>,
    /// Takes the guest's memory from huge pages of this size.
    pub huge_page_bytes: Option<u64>,
}

/// The part of the host that one guest node runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostNode {
    /// The host node its memory comes from.
    pub node: NodeId,
    /// The host cpus its virtual cpus run on.
    pub cpus: CpuSet,
}

impl HostPlacement {
    /// Puts guest nodes on the host's nodes in turn, each on all online cpus there. Nodes
    /// without memory or without online cpus are left out.
    #[must_use]
    pub fn in_turn(host: &Machine, guest_nodes: usize) -> Self {
        let (online, memory) = (host.online_cpus(), host.memory_nodes());
        let usable: Vec<HostNode> = host
            .nodes
            .iter()
            .filter(|node| memory.contains(node.id))
            .map(|node| HostNode { node: node.id, cpus: node.cpus.intersection(&online) })
            .filter(|node| !node.cpus.is_empty())
            .collect();
        Self {
            nodes: usable.into_iter().cycle().take(guest_nodes).collect(),
            huge_page_bytes: None,
        }
    }
}

/// A guest: cpus and nodes numbered from 0 without gaps.
#[derive(Clone, Debug)]
pub(crate) struct Guest {
    pub(crate) shape: Shape,
    pub(crate) cpus: Vec<GuestCpu>,
    pub(crate) nodes: Vec<GuestNode>,
    /// Latencies and bandwidths by (initiator, target), both dense.
    pub(crate) access: BTreeMap<(usize, usize), AccessAttributes>,
}

/// A virtual cpu; its place in [`Guest::cpus`] is its number.
#[derive(Clone, Debug)]
pub(crate) struct GuestCpu {
    pub(crate) package: usize,
    pub(crate) l3_group: usize,
    pub(crate) core: usize,
    pub(crate) thread: usize,
    pub(crate) node: usize,
}

/// A virtual node; its place in [`Guest::nodes`] is its number.
#[derive(Clone, Debug)]
pub(crate) struct GuestNode {
    pub(crate) memory_mib: u64,
    /// Virtual cpus.
    pub(crate) cpus: CpuSet,
    pub(crate) distances: Vec<u8>,
}

impl Guest {
    /// The guest that is most like `machine`.
    pub(crate) fn of(
        format: &'static str,
        machine: &Machine,
        findings: &mut Findings,
    ) -> Result<Self, WriteError> {
        let online = machine.nodes.iter().filter(|node| node.online);
        let ids: Vec<NodeId> = online.map(|node| node.id).collect();
        let unknown = |what: &str| WriteError::Unknown { format, what: what.to_owned() };
        if ids.is_empty() {
            return Err(unknown("at least one node"));
        }
        if machine.memory_bytes() < MIB {
            return Err(unknown("the nodes' memory"));
        }
        let ordered = Ordered::of(machine);
        let order = ordered.ids();
        if order.is_empty() {
            return Err(unknown("at least one cpu"));
        }
        let shape = shape(&ordered, findings);
        note_numbering(&ids, &order, findings);
        let cpus = cpus(machine, shape, &order, &ids, findings);
        let nodes = nodes(machine, &ids, &cpus, findings);
        Ok(Self { shape, nodes, access: access(machine, &ids, &cpus), cpus })
    }

    /// Memory of all nodes in MiB.
    pub(crate) fn memory_mib(&self) -> u64 {
        self.nodes.iter().map(|node| node.memory_mib).sum()
    }

    /// The nearest node with cpus, which a node without any is reached from.
    pub(crate) fn initiator(&self, node: usize) -> usize {
        let with_cpus = (0..self.nodes.len()).filter(|&other| !self.nodes[other].cpus.is_empty());
        let nearest =
            with_cpus.min_by_key(|&other| (other != node, self.nodes[other].distances[node]));
        nearest.unwrap_or(node)
    }
}

fn shape(ordered: &Ordered, findings: &mut Findings) -> Shape {
    if let Some(shape) = ordered.shape_with_l3_groups() {
        return shape;
    }
    let (shape, what) = match ordered.shape_without_l3_groups() {
        Some(shape) => (shape, "L3 groups"),
        None => {
            let cores = ordered.ids().len();
            let (packages, l3_groups, threads) = (1, 1, 1);
            let flat = Shape { packages, l3_groups, cores, threads };
            (flat, "packages, L3 groups and SMT siblings")
        }
    };
    let message = format!("{what} differ in size, and are not shown to the guest");
    findings.warning("topology-irregular", "cpus".to_owned(), message);
    shape
}

fn note_numbering(ids: &[NodeId], order: &[CpuId], findings: &mut Findings) {
    if (0u32..).zip(ids).any(|(number, id)| id.0 != number) {
        let message = "nodes are numbered from 0 without gaps".to_owned();
        findings.note("nodes-renumbered", "nodes".to_owned(), message);
    }
    if (0u32..).zip(order).any(|(number, id)| id.0 != number) {
        let message = "cpus are numbered by package, L3 group, core and thread".to_owned();
        findings.note("cpus-renumbered", "cpus".to_owned(), message);
    }
}

fn cpus(
    machine: &Machine,
    shape: Shape,
    order: &[CpuId],
    ids: &[NodeId],
    findings: &mut Findings,
) -> Vec<GuestCpu> {
    let node = |id: CpuId, findings: &mut Findings| {
        let node = machine.cpu(id).and_then(|cpu| cpu.node);
        let index = node.and_then(|node| ids.iter().position(|&id| id == node));
        index.unwrap_or_else(|| {
            let message = "is on no online node, and put on the first".to_owned();
            findings.warning("cpu-without-node", format!("cpu {id}"), message);
            0
        })
    };
    let place = |(index, &id): (usize, &CpuId)| {
        let core = index / shape.threads;
        let l3_group = core / shape.cores;
        GuestCpu {
            package: l3_group / shape.l3_groups,
            l3_group: l3_group % shape.l3_groups,
            core: core % shape.cores,
            thread: index % shape.threads,
            node: node(id, findings),
        }
    };
    order.iter().enumerate().map(place).collect()
}

fn nodes(
    machine: &Machine,
    ids: &[NodeId],
    cpus: &[GuestCpu],
    findings: &mut Findings,
) -> Vec<GuestNode> {
    let mut nodes = Vec::new();
    for (index, &id) in ids.iter().enumerate() {
        let memory_bytes = machine.node(id).map_or(0, |node| node.memory_bytes);
        if !memory_bytes.is_multiple_of(MIB) {
            let message = format!("{memory_bytes} bytes are rounded down to whole MiB");
            findings.note("memory-rounded", format!("node {id}"), message);
        }
        let own = (0u32..).zip(cpus).filter(|(_, cpu)| cpu.node == index);
        let distance = |&to: &NodeId| {
            let assumed = if id == to { numalab_topology::LOCAL_DISTANCE } else { REMOTE_DISTANCE };
            machine.distance(id, to).unwrap_or(assumed)
        };
        nodes.push(GuestNode {
            memory_mib: memory_bytes / MIB,
            cpus: own.map(|(number, _)| CpuId(number)).collect(),
            distances: ids.iter().map(distance).collect(),
        });
    }
    nodes
}

/// One set of attributes for each pair: those of cpus where they differ.
fn access(
    machine: &Machine,
    ids: &[NodeId],
    cpus: &[GuestCpu],
) -> BTreeMap<(usize, usize), AccessAttributes> {
    let index = |id: NodeId| ids.iter().position(|&other| other == id);
    let mut pairs = BTreeMap::new();
    for access in &machine.access {
        let (Some(from), Some(to)) = (index(access.initiator), index(access.target)) else {
            continue;
        };
        let has_cpus = cpus.iter().any(|cpu| cpu.node == from);
        let better = access.class == AccessClass::Cpu || !pairs.contains_key(&(from, to));
        if has_cpus && better {
            pairs.insert((from, to), access.clone());
        }
    }
    pairs
}
