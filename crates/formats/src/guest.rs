//! The machine that a hypervisor can give to a guest.

use std::collections::BTreeMap;

use numalab_topology::{
    AccessAttributes, AccessClass, CpuId, CpuSet, Findings, LOCAL_DISTANCE, Machine,
    MemorySideCache, Node, NodeId, REMOTE_DISTANCE,
};

use crate::error::WriteError;
use crate::regular::{Ordered, Shape};

const MIB: u64 = 1 << 20;
/// The largest level of memory-side caches in a HMAT (ACPI 6.5, section 5.2.28.5).
const MOST_CACHE_LEVELS: u8 = 3;

/// A guest: cpus and nodes numbered from 0 without gaps.
#[derive(Clone, Debug)]
pub(crate) struct Guest {
    pub(crate) shape: Shape,
    pub(crate) cpus: Vec<GuestCpu>,
    pub(crate) nodes: Vec<GuestNode>,
    /// Latencies and bandwidths by (initiator, target), both dense.
    pub(crate) access: BTreeMap<(usize, usize), AccessAttributes>,
}

/// A vCPU; its index in [`Guest::cpus`] is its number.
#[derive(Clone, Debug)]
pub(crate) struct GuestCpu {
    pub(crate) package: usize,
    pub(crate) l3_group: usize,
    pub(crate) core: usize,
    pub(crate) thread: usize,
    pub(crate) node: usize,
}

/// A virtual node; its index in [`Guest::nodes`] is its number.
#[derive(Clone, Debug)]
pub(crate) struct GuestNode {
    pub(crate) memory_mib: u64,
    /// Virtual cpus.
    pub(crate) cpus: CpuSet,
    pub(crate) distances: Vec<u8>,
    /// True if the node's memory belongs to a CXL device.
    pub(crate) cxl: bool,
}

impl Guest {
    /// Returns the guest that resembles `machine` most closely.
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
        if let Some(node) = machine.nodes.iter().find(|node| node.memory_unknown) {
            return Err(unknown(&format!("the memory of node {}", node.id)));
        }
        let ordered = Ordered::of(machine);
        let order = ordered.ids();
        if order.is_empty() {
            return Err(unknown("at least one cpu"));
        }
        let shape = shape(&ordered, findings);
        note_numbering(&ids, &order, findings);
        let cpus = cpus(machine, shape, &order, &ids, findings);
        let nodes = nodes(machine, &ids, &cpus);
        let known = |&from: &NodeId| ids.iter().all(|&to| machine.distance(from, to).is_some());
        if ids.len() > 1 && !ids.iter().all(known) {
            let message = "unknown distances are written as 10 and 20";
            findings.note("distances-assumed", "distances", message);
        }
        note_distances(machine, &ids, findings);
        Ok(Self { shape, nodes, access: access(machine, &ids, &cpus), cpus })
    }

    /// Returns the memory of all nodes in MiB.
    pub(crate) fn memory_mib(&self) -> u64 {
        self.nodes.iter().map(|node| node.memory_mib).sum()
    }

    /// Returns the nearest node with cpus, from which a node without cpus is accessed.
    pub(crate) fn initiator(&self, node: usize) -> usize {
        let with_cpus = (0..self.nodes.len()).filter(|&other| !self.nodes[other].cpus.is_empty());
        let nearest =
            with_cpus.min_by_key(|&other| (other != node, self.nodes[other].distances[node]));
        nearest.unwrap_or(node)
    }

    /// Returns the memory-side caches of every node by level. QEMU accepts only those of a node
    /// with given latency and bandwidth, level by level from the memory, each larger than the one
    /// before.
    pub(crate) fn side_caches(
        &self,
        machine: &Machine,
        findings: &mut Findings,
    ) -> Vec<Vec<MemorySideCache>> {
        let online = machine.nodes.iter().filter(|node| node.online);
        let of_node = |(index, node): (usize, &Node)| {
            let mut caches = node.memory_side_caches.clone();
            caches.sort_by_key(|cache| cache.level);
            let levels = (1..=MOST_CACHE_LEVELS).zip(&caches);
            let in_order = levels.clone().count() == caches.len()
                && levels.clone().all(|(level, cache)| cache.level == level)
                && caches.windows(2).all(|pair| pair[0].size_bytes < pair[1].size_bytes);
            if let Some(ways) = caches.iter().filter_map(|cache| cache.ways).find(|&ways| ways > 1)
            {
                let message = format!(
                    "the {ways} ways of its memory-side cache are given as complex indexing"
                );
                findings.note("ways-lost", format!("node {}", node.id), message);
            }
            let why = match (self.is_described(index), in_order) {
                _ if caches.is_empty() => return caches,
                (true, true) => return caches,
                (true, false) => "they are not in order of level and size",
                (false, _) => "QEMU accepts them only with latencies and bandwidths",
            };
            let message = format!("its memory-side caches are left out: {why}");
            findings.warning("memory-side-caches-lost", format!("node {}", node.id), message);
            Vec::new()
        };
        online.enumerate().map(of_node).collect()
    }

    /// Returns true if a latency and a bandwidth of the node's memory are known.
    fn is_described(&self, node: usize) -> bool {
        let of_node = || self.access.iter().filter(|((_, target), _)| *target == node);
        let latency = |access: &AccessAttributes| {
            [access.read_latency_ps, access.write_latency_ps].into_iter().find_map(nanoseconds)
        };
        let bandwidth = |access: &AccessAttributes| {
            let both = [access.read_bandwidth_mb_per_s, access.write_bandwidth_mb_per_s];
            both.into_iter().flatten().any(|mb| mb > 0)
        };
        of_node().any(|(_, access)| latency(access).is_some())
            && of_node().any(|(_, access)| bandwidth(access))
    }
}

/// Converts a latency to whole nanoseconds, if it is above zero.
pub(crate) fn nanoseconds(ps: Option<u64>) -> Option<u64> {
    ps.map(|ps| ps.saturating_add(500) / 1000).filter(|&ns| ns > 0)
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
    let message = format!("{what} differ in size, so they are not shown to the guest");
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

/// Returns a distance as a guest's Linux accepts it: a single row of other values makes it ignore
/// all of them (`slit_valid` in drivers/acpi/numa/srat.c); libvirt refuses them.
fn accepted(is_own: bool, distance: u8) -> u8 {
    if is_own { LOCAL_DISTANCE } else { distance.max(LOCAL_DISTANCE + 1) }
}

fn note_distances(machine: &Machine, ids: &[NodeId], findings: &mut Findings) {
    let differs = |from: NodeId, to: NodeId| {
        machine.distance(from, to).is_some_and(|given| accepted(from == to, given) != given)
    };
    if ids.iter().any(|&from| ids.iter().any(|&to| differs(from, to))) {
        let message = "a node is at 10 from itself and at 11 or more from others, as guests expect";
        findings.note("distances-changed", "distances", message);
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
            let message = "is on no online node, so it is put on the first".to_owned();
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

fn nodes(machine: &Machine, ids: &[NodeId], cpus: &[GuestCpu]) -> Vec<GuestNode> {
    let mut nodes = Vec::new();
    for (index, &id) in ids.iter().enumerate() {
        let memory_bytes = machine.node(id).map_or(0, |node| node.memory_bytes);
        let own = (0u32..).zip(cpus).filter(|(_, cpu)| cpu.node == index);
        let distance =
            |&to: &NodeId| accepted(id == to, machine.distance(id, to).unwrap_or(REMOTE_DISTANCE));
        nodes.push(GuestNode {
            memory_mib: memory_bytes / MIB,
            cpus: own.map(|(number, _)| CpuId(number)).collect(),
            distances: ids.iter().map(distance).collect(),
            cxl: machine.node(id).is_some_and(|node| node.cxl),
        });
    }
    nodes
}

/// Returns one set of attributes for each pair: those for cpus if they differ.
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

#[cfg(test)]
mod tests {
    use numalab_topology::{Cpu, Distances};

    use super::*;

    #[test]
    fn distances_that_a_guest_would_refuse_are_changed_with_a_note() {
        let node =
            |id| Node { id: NodeId(id), online: true, memory_bytes: 1 << 30, ..Node::default() };
        let cpu =
            |id| Cpu { id: CpuId(id), online: true, node: Some(NodeId(id)), ..Cpu::default() };
        let mut machine = Machine {
            nodes: vec![node(0), node(1)],
            cpus: vec![cpu(0), cpu(1)],
            distances: Distances::from_rows(&[vec![20, 10], vec![21, 10]]).unwrap(),
            ..Machine::default()
        };
        let given = |machine: &Machine| {
            let mut findings = Findings::default();
            let guest = Guest::of("a test", machine, &mut findings).unwrap();
            let rows: Vec<_> = guest.nodes.into_iter().map(|node| node.distances).collect();
            let codes: Vec<_> = findings.into_list().into_iter().map(|found| found.code).collect();
            (rows, codes.contains(&"distances-changed".to_owned()))
        };
        assert_eq!(given(&machine), (vec![vec![10, 11], vec![21, 10]], true));
        machine.distances = Distances::uniform(2, 20);
        assert_eq!(given(&machine), (vec![vec![10, 20], vec![20, 10]], false));
    }
}
