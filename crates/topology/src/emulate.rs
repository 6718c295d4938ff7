//! Emulation of a machine with other nodes: its cpus and memory are divided again.
#![expect(missing_docs, reason = "fields of errors that their names explain")]

mod cpus;
mod memory;

use alloc::vec::Vec;

use crate::cache::Cache;
use crate::count::count;
use crate::cpu::Cpu;
use crate::distance::{Distances, LOCAL_DISTANCE};
use crate::fallback::REMOTE_DISTANCE;
use crate::id::{CpuId, Id, NodeId};
use crate::id_set::{CpuSet, NodeSet};
use crate::machine::{MAX_NODES, Machine};
use crate::node::{MemoryTier, Node};
use crate::order;
use memory::Share;

/// The nodes to make of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmulationSpec {
    /// The nodes.
    pub nodes: EmulatedNodes,
    /// Distances between the nodes; `None` keeps those of the physical nodes that they are on.
    pub distances: Option<Distances>,
}

/// The division of cpus and memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EmulatedNodes {
    /// This number of nodes with equal parts of the machine (`numa=fake=4`).
    Equal(usize),
    /// Every physical node divided into this number of equal parts (`numa=fake=2U`).
    Split(usize),
    /// These nodes in order, with the machine's memory assigned in order of address.
    Listed(Vec<EmulatedNode>),
}

/// A requested node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmulatedNode {
    /// Memory in bytes; 0 makes a node without memory.
    pub memory_bytes: u64,
    /// Number of cpus; `None` is an even part of those left over by the others, 0 makes a node
    /// without cpus.
    pub cpus: Option<usize>,
}

/// Reasons why a machine cannot be emulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmulationError {
    /// The number of nodes is zero or too large.
    #[error("{nodes} emulated nodes: expected 1 to {MAX_NODES}")]
    NodeCount { nodes: usize },
    /// The base machine has no node that can be split.
    #[error("the machine has no online node that could be split")]
    NothingToSplit,
    /// The nodes need more memory than there is.
    #[error("the nodes need {asked_bytes} bytes of memory, but the machine has {present_bytes}")]
    Memory {
        /// Bytes needed; `u64::MAX` if the sum is beyond 64 bits.
        asked_bytes: u64,
        /// Bytes of memory that the machine has.
        present_bytes: u64,
    },
    /// The nodes need more cpus than there are.
    #[error("the nodes need {}, but the machine has {present} online", count(*asked, "cpu"))]
    Cpus { asked: usize, present: usize },
    /// The distance table is for another number of nodes.
    #[error("the distance table has {rows} rows, expected {nodes}, one for each node")]
    DistanceTable { rows: usize, nodes: usize },
}

/// An emulated node under construction.
#[derive(Clone, Debug, Default)]
struct NodePart {
    memory: Share,
    cpus: Vec<CpuId>,
}

impl EmulationSpec {
    /// Creates a specification with the distances of the physical machine.
    pub const fn new(nodes: EmulatedNodes) -> Self {
        let distances = None;
        Self { nodes, distances }
    }

    /// Divides the online cpus and the memory of `base` among the nodes.
    ///
    /// Memory is cut by usable bytes in order of node and address, so that holes between ranges do
    /// not reduce a node's memory; a cut is on a 2 MiB boundary if parts are that large. With a
    /// base without any memory (one that came from `lscpu`, for example), listed nodes get their
    /// sizes without ranges. Cpus keep ids, cores, packages and L3 groups; they are divided evenly
    /// in order of node, package, L3 group and core, with SMT siblings together. Memory and cpus
    /// that belong to none of the nodes are left out. Without a distance table, nodes on different
    /// physical nodes have the distance of those, and nodes on the same one have
    /// [`LOCAL_DISTANCE`], as in Linux; nodes of a base that has only one node or no distances are
    /// [`REMOTE_DISTANCE`] apart. Access attributes and tiers follow the physical nodes; free
    /// memory, huge page pools and memory-side caches are unknown in the result.
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

    /// Returns the listed nodes and distances that make another machine resemble `model`: the same
    /// number of nodes, each with the same amount of memory and number of online cpus.
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

fn equal(base: &Machine, nodes: usize) -> Result<Vec<NodePart>, EmulationError> {
    check_count(nodes)?;
    let memory = memory::Pool::of_machine(base).split(nodes);
    let cpus = cpus::spread(&cpus::ordered(base), nodes);
    Ok(join(memory, cpus))
}

fn split(base: &Machine, ways: usize) -> Result<Vec<NodePart>, EmulationError> {
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

fn listed(base: &Machine, nodes: &[EmulatedNode]) -> Result<Vec<NodePart>, EmulationError> {
    check_count(nodes.len())?;
    let sizes: Vec<u64> = nodes.iter().map(|node| node.memory_bytes).collect();
    let memory = memory::Pool::of_machine(base).take(&sizes)?;
    let wanted: Vec<Option<usize>> = nodes.iter().map(|node| node.cpus).collect();
    let cpus = cpus::deal(&cpus::ordered(base), &wanted)?;
    Ok(join(memory, cpus))
}

fn join(memory: Vec<Share>, cpus: Vec<Vec<CpuId>>) -> Vec<NodePart> {
    let pairs = memory.into_iter().zip(cpus);
    pairs.map(|(memory, cpus)| NodePart { memory, cpus }).collect()
}

/// Returns the id of the emulated node at an index.
fn node_id(index: usize) -> NodeId {
    NodeId::from_number(u32::try_from(index).unwrap_or(u32::MAX))
}

fn assemble(base: &Machine, parts: Vec<NodePart>, distances: Option<Distances>) -> Machine {
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

/// Returns the caches of the base, without the cpus that were left out.
fn caches_of(base: &Machine, cpus: &[Cpu]) -> Vec<Cache> {
    let kept: CpuSet = cpus.iter().map(|cpu| cpu.id).collect();
    let caches = base
        .caches
        .iter()
        .map(|cache| Cache { cpus: cache.cpus.intersection(&kept), ..cache.clone() });
    caches.filter(|cache| !cache.cpus.is_empty()).collect()
}

/// Returns the physical node that an emulated one is on: that of its first memory, or of its first
/// cpu if it has none.
fn home(base: &Machine, part: &NodePart) -> Option<usize> {
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

/// Copies the access attributes and tiers of the physical nodes to the emulated nodes.
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
