//! A machine with other nodes: one machine's cpus and memory dealt out anew.

mod cpus;
mod memory;

use alloc::vec::Vec;

use crate::cache::Cache;
use crate::cpu::Cpu;
use crate::distance::{Distances, LOCAL_DISTANCE};
use crate::fallback::REMOTE_DISTANCE;
use crate::id::{CpuId, Id, NodeId};
use crate::id_set::{CpuSet, NodeSet};
use crate::machine::{MAX_NODES, Machine};
use crate::node::{MemoryTier, Node};
use crate::order;
use memory::Share;

/// Which nodes to make of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmulationSpec {
    /// The nodes.
    pub nodes: EmulatedNodes,
    /// Their distances; `None` keeps those of the physical nodes they lie on.
    pub distances: Option<Distances>,
}

/// How cpus and memory are divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EmulatedNodes {
    /// This many nodes with equal parts of the machine (`numa=fake=4`).
    Equal(usize),
    /// Every physical node in this many equal parts (`numa=fake=2U`).
    Split(usize),
    /// These nodes in order, from the machine's memory in order of address.
    Listed(Vec<EmulatedNode>),
}

/// A node that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmulatedNode {
    /// Memory in bytes; 0 makes a node without memory.
    pub memory_bytes: u64,
    /// How many cpus; `None` an even part of those the others leave, 0 makes
    /// a node without cpus.
    pub cpus: Option<usize>,
}

/// Why a machine cannot be emulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmulationError {
    /// The number of nodes is zero or too large.
    #[error("{nodes} emulated nodes: expected 1 to {MAX_NODES}")]
    NodeCount {
        /// Nodes asked for.
        nodes: usize,
    },
    /// The base machine has no node that could be split.
    #[error("the machine has no online node to split")]
    NothingToSplit,
    /// More memory is asked for than there is.
    #[error("the nodes ask for {asked_bytes} bytes of memory, the machine has {present_bytes}")]
    Memory {
        /// Bytes asked for; `u64::MAX` if the sum is beyond 64 bits.
        asked_bytes: u64,
        /// Bytes of the machine.
        present_bytes: u64,
    },
    /// More cpus are asked for than there are.
    #[error("the nodes ask for {asked} cpus, the machine has {present} online")]
    Cpus {
        /// Cpus asked for.
        asked: usize,
        /// Online cpus.
        present: usize,
    },
    /// The distance table is not for this number of nodes.
    #[error("the distance table has {rows} rows, expected {nodes}, one for each node")]
    DistanceTable {
        /// Rows in the table.
        rows: usize,
        /// Emulated nodes.
        nodes: usize,
    },
}

/// An emulated node while it is made.
#[derive(Clone, Debug, Default)]
struct Part {
    memory: Share,
    cpus: Vec<CpuId>,
}

impl EmulationSpec {
    /// The nodes, with the distances of the physical machine.
    #[must_use]
    pub const fn new(nodes: EmulatedNodes) -> Self {
        let distances = None;
        Self { nodes, distances }
    }

    /// Deals the online cpus and the memory of `base` out to the nodes.
    ///
    /// Memory is cut by usable bytes in order of node and address, so holes
    /// between ranges cost no node anything; a cut falls on a 2 MiB boundary
    /// where parts are that large. A base without any memory (one that came
    /// from `lscpu`, say) gives listed nodes what they ask for, without ranges.
    /// Cpus keep ids, cores, packages and L3 groups; they are dealt out evenly in
    /// order of node, package, L3 group and core, SMT siblings together. Memory
    /// and cpus that no node takes are left out.
    /// Without a distance table, nodes on different physical nodes
    /// are as far apart as those and nodes on the same one are at
    /// [`LOCAL_DISTANCE`], as in Linux; nodes of a base that has only one node
    /// or no distances are [`REMOTE_DISTANCE`] apart. Access attributes and
    /// tiers follow the physical nodes; free memory, huge page pools and
    /// memory-side caches are unknown in the result.
    ///
    /// # Errors
    /// Every variant of [`EmulationError`], where the numbers do not fit.
    pub fn emulate(&self, base: &Machine) -> Result<Machine, EmulationError> {
        let parts = match &self.nodes {
            EmulatedNodes::Equal(nodes) => equal(base, *nodes)?,
            EmulatedNodes::Split(ways) => split(base, *ways)?,
            EmulatedNodes::Listed(nodes) => listed(base, nodes)?,
        };
        if let Some(table) = self.distances.as_ref().filter(|table| table.len() != parts.len()) {
            let (rows, nodes) = (table.len(), parts.len());
            return Err(EmulationError::DistanceTable { rows, nodes });
        }
        Ok(assemble(base, parts, self.distances.clone()))
    }

    /// The listed nodes and distances that make another machine like `model`:
    /// as many nodes, each with as much memory and as many online cpus.
    #[must_use]
    pub fn like(model: &Machine) -> Self {
        let online = model.online_cpus();
        let nodes = model.nodes.iter().map(|node| EmulatedNode {
            memory_bytes: node.memory_bytes,
            cpus: Some(node.cpus.intersection(&online).len()),
        });
        let complete = model.distances.is_complete() && !model.distances.is_empty();
        Self {
            nodes: EmulatedNodes::Listed(nodes.collect()),
            distances: complete.then(|| model.distances.clone()),
        }
    }
}

fn check_count(nodes: usize) -> Result<(), EmulationError> {
    if (1..=MAX_NODES).contains(&nodes) { Ok(()) } else { Err(EmulationError::NodeCount { nodes }) }
}

fn equal(base: &Machine, nodes: usize) -> Result<Vec<Part>, EmulationError> {
    check_count(nodes)?;
    let memory = memory::Pool::of_machine(base).split(nodes);
    let cpus = cpus::spread(&cpus::ordered(base), nodes);
    Ok(join(memory, cpus))
}

fn split(base: &Machine, ways: usize) -> Result<Vec<Part>, EmulationError> {
    let online: Vec<&Node> = base.nodes.iter().filter(|node| node.online).collect();
    if online.is_empty() {
        return Err(EmulationError::NothingToSplit);
    }
    check_count(ways)?;
    check_count(ways.saturating_mul(online.len()))?;
    let ordered = cpus::ordered(base);
    let mut parts = Vec::new();
    for node in online {
        let of_node = |cpu: &&cpus::Placed| cpu.node == Some(node.id);
        let own: Vec<cpus::Placed> = ordered.iter().filter(of_node).copied().collect();
        let memory = memory::Pool::of_node(base, node).split(ways);
        parts.extend(join(memory, cpus::spread(&own, ways)));
    }
    Ok(parts)
}

fn listed(base: &Machine, nodes: &[EmulatedNode]) -> Result<Vec<Part>, EmulationError> {
    check_count(nodes.len())?;
    let sizes: Vec<u64> = nodes.iter().map(|node| node.memory_bytes).collect();
    let memory = memory::Pool::of_machine(base).take(&sizes)?;
    let wanted: Vec<Option<usize>> = nodes.iter().map(|node| node.cpus).collect();
    let cpus = cpus::deal(&cpus::ordered(base), &wanted)?;
    Ok(join(memory, cpus))
}

fn join(memory: Vec<Share>, cpus: Vec<Vec<CpuId>>) -> Vec<Part> {
    let pairs = memory.into_iter().zip(cpus);
    pairs.map(|(memory, cpus)| Part { memory, cpus }).collect()
}

/// The emulated node's number.
fn node_id(index: usize) -> NodeId {
    NodeId::from_number(u32::try_from(index).unwrap_or(u32::MAX))
}

fn assemble(base: &Machine, parts: Vec<Part>, distances: Option<Distances>) -> Machine {
    let homes: Vec<Option<usize>> = parts.iter().map(|part| home(base, part)).collect();
    let mut cpus: Vec<Cpu> = Vec::new();
    let mut nodes = Vec::new();
    let mut ranges = Vec::new();
    for (index, part) in parts.into_iter().enumerate() {
        let id = node_id(index);
        let dealt = part.cpus.iter().filter_map(|&cpu| base.cpu(cpu)).cloned();
        cpus.extend(dealt.map(|cpu| Cpu { node: Some(id), ..cpu }));
        ranges.extend(part.memory.ranges(id));
        nodes.push(Node {
            id,
            online: true,
            cpus: part.cpus.iter().copied().collect(),
            memory_bytes: part.memory.bytes(),
            ..Node::default()
        });
    }
    order::by_key(&mut cpus, |cpu| cpu.id);
    order::by_key(&mut ranges, |range| range.base);
    let mut machine = Machine {
        distances: distances.unwrap_or_else(|| physical_distances(base, &homes)),
        caches: caches_of(base, &cpus),
        nodes,
        cpus,
        ranges,
        ..Machine::default()
    };
    follow_homes(base, &homes, &mut machine);
    machine
}

/// The caches of the base, without the cpus that were left out.
fn caches_of(base: &Machine, cpus: &[Cpu]) -> Vec<Cache> {
    let kept: CpuSet = cpus.iter().map(|cpu| cpu.id).collect();
    let caches = base
        .caches
        .iter()
        .map(|cache| Cache { cpus: cache.cpus.intersection(&kept), ..cache.clone() });
    caches.filter(|cache| !cache.cpus.is_empty()).collect()
}

/// The physical node an emulated one lies on: that of its first memory, or of
/// its first cpu if it has none.
fn home(base: &Machine, part: &Part) -> Option<usize> {
    let of_cpu = || base.cpu(*part.cpus.first()?).and_then(|cpu| cpu.node);
    base.node_index(part.memory.home().or_else(of_cpu)?)
}

fn physical_distances(base: &Machine, homes: &[Option<usize>]) -> Distances {
    let mut distances = Distances::uniform(homes.len(), REMOTE_DISTANCE);
    if base.nodes.len() < 2 {
        return distances;
    }
    for (from, &from_home) in homes.iter().enumerate() {
        for (to, &to_home) in homes.iter().enumerate() {
            let (Some(from_home), Some(to_home)) = (from_home, to_home) else {
                continue;
            };
            let known = base.distances.get(from_home, to_home);
            let distance = if from_home == to_home { Some(LOCAL_DISTANCE) } else { known };
            if let Some(distance) = distance.filter(|_| from != to) {
                distances.set(from, to, distance);
            }
        }
    }
    distances
}

/// Gives the emulated nodes the access attributes and tiers of their homes.
fn follow_homes(base: &Machine, homes: &[Option<usize>], machine: &mut Machine) {
    let on = |physical: NodeId| {
        let home = base.node_index(physical);
        let emulated = homes.iter().enumerate();
        emulated
            .filter(move |(_, own)| own.is_some() && **own == home)
            .map(|(index, _)| node_id(index))
    };
    for access in &base.access {
        for initiator in on(access.initiator) {
            for target in on(access.target) {
                let mut access = access.clone();
                (access.initiator, access.target) = (initiator, target);
                machine.access.push(access);
            }
        }
    }
    for tier in &base.tiers {
        let nodes: NodeSet = tier.nodes.iter().flat_map(on).collect();
        if !nodes.is_empty() {
            machine.tiers.push(MemoryTier { id: tier.id, nodes });
        }
    }
}
