//! A machine in TOML, the format that users write by hand and keep in a repository.
//!
//! It represents the complete model, so reading a written machine gives the same machine; unknown
//! keys are refused. [`EXAMPLE`] shows every key.

mod document;
mod memory;
mod scale;
mod write;

use std::collections::BTreeMap;

use numalab_topology::{
    Cache, Cpu, CpuId, CpuSet, Distances, LOCAL_DISTANCE, MAX_NODES, Machine, Node,
};

use crate::error::ReadError;
use document::{ByNumber, CpuTable, Document, NodeTable};
pub use memory::{LoadFigures, MemoryFigures};
pub use scale::scaled;
pub use write::{write, write_file};

/// A commented file that uses every key.
pub const EXAMPLE: &str = include_str!("../examples/machine.toml");

const FORMAT: &str = "machine TOML";
/// The largest number of cpus in all caches together: 65,536 cpus with 64 caches each.
const MOST_CACHE_CPUS: usize = 1 << 22;

/// A machine with the performance of its memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineFile {
    /// The topology.
    pub machine: Machine,
    /// The performance of the machine's memory; empty if not given.
    pub memory: MemoryFigures,
}

/// Reads a machine without the performance of its memory.
///
/// # Errors
/// As [`read_file`].
pub fn read(text: &str) -> Result<Machine, ReadError> {
    read_file(text).map(|file| file.machine)
}

/// Reads a machine with the performance of its memory.
///
/// # Errors
/// [`ReadError::Markup`], with line and column for text that is not TOML, an unknown key or a value
/// of another form, and with the ids for numbers that contradict each other.
pub fn read_file(text: &str) -> Result<MachineFile, ReadError> {
    let document: Document = toml::from_str(text).map_err(|error| refuse(error.to_string()))?;
    check_counts(&document)?;
    let mut cpus = cpus(&document)?;
    assign(&mut cpus, "packages", document.packages, |cpu, number| cpu.package = Some(number))?;
    assign(&mut cpus, "cores", document.cores, |cpu, number| cpu.core = Some(number))?;
    assign(&mut cpus, "l3_groups", document.l3_groups, |cpu, number| {
        cpu.l3_group = Some(number);
    })?;
    assign(&mut cpus, "threads", document.threads, |cpu, number| cpu.thread = number)?;
    for (cpu, apic_id) in document.apic_ids.0 {
        let known = cpus.get_mut(&CpuId(cpu)).ok_or_else(|| unknown_cpu("apic_ids", CpuId(cpu)))?;
        known.apic_id = Some(apic_id);
    }
    let mut nodes: Vec<Node> = document.node.into_iter().map(NodeTable::into_node).collect();
    nodes.sort_by_key(|node| node.id);
    if let Some(pair) = nodes.windows(2).find(|pair| pair[0].id == pair[1].id) {
        return Err(refuse(format!("node {} is listed twice", pair[0].id)));
    }
    let memory = document.memory;
    let machine = Machine {
        nodes,
        cpus: cpus.into_values().collect(),
        distances: distances(&document.distances)?,
        caches: document
            .cache
            .into_iter()
            .flat_map(document::CacheTable::into_caches)
            .collect::<Vec<Cache>>(),
        ranges: document.range.into_iter().map(document::RangeTable::into_range).collect(),
        access: document.access.into_iter().map(document::AccessTable::into_access).collect(),
        tiers: document.tier.into_iter().map(document::TierTable::into_tier).collect(),
        devices: document.device,
        allowed: document.allowed.map(document::AllowedTable::into_allowed),
    };
    Ok(MachineFile { machine, memory })
}

/// Refuses input that would take time and memory out of proportion to its size.
fn check_counts(document: &Document) -> Result<(), ReadError> {
    let shared = document.cache.iter().map(document::CacheTable::cpu_count).sum();
    let counts = [
        ("nodes", document.node.len(), MAX_NODES),
        ("rows of distances", document.distances.len(), MAX_NODES),
        ("cpus in caches", shared, MOST_CACHE_CPUS),
    ];
    match counts.into_iter().find(|(_, found, most)| found > most) {
        Some((what, found, most)) => Err(ReadError::TooMany { format: FORMAT, what, found, most }),
        None => Ok(()),
    }
}

fn refuse(message: String) -> ReadError {
    ReadError::Markup { format: FORMAT, message: message.trim_end().to_owned() }
}

/// Returns the cpus with their nodes; without `[cpus]`, all cpus in the lists of nodes are online.
fn cpus(document: &Document) -> Result<BTreeMap<CpuId, Cpu>, ReadError> {
    let mut cpus = BTreeMap::new();
    let mut add = |set: &CpuSet, online: bool| {
        cpus.extend(set.iter().map(|id| (id, Cpu { id, online, ..Cpu::default() })));
    };
    match &document.cpus {
        None => document.node.iter().for_each(|node| add(&node.cpus, true)),
        Some(CpuTable { online, offline }) => {
            let both = online.intersection(offline);
            if !both.is_empty() {
                return Err(refuse(format!("cpus {both} are both online and offline")));
            }
            add(online, true);
            add(offline, false);
        }
    }
    for (index, node) in document.node.iter().enumerate() {
        // Parts of one node list its cpus, which name the first of them.
        let is_part =
            |other: &NodeTable| other.cpus == node.cpus && are_local(document, other, node);
        if document.node[..index].iter().any(is_part) {
            continue;
        }
        for id in node.cpus.iter() {
            let Some(cpu) = cpus.get_mut(&id) else {
                let message = format!(
                    "cpu {id} of node {} is neither in cpus.online nor in cpus.offline",
                    node.id
                );
                return Err(refuse(message));
            };
            if let Some(other) = cpu.node.replace(node.id) {
                return Err(refuse(format!("cpu {id} is on node {other} and on node {}", node.id)));
            }
        }
    }
    Ok(cpus)
}

/// Returns true if two nodes are at the local distance from each other, like parts of one node.
fn are_local(document: &Document, one: &NodeTable, other: &NodeTable) -> bool {
    let rank = |of: &NodeTable| document.node.iter().filter(|node| node.id < of.id).count();
    let at = |from: usize, to: usize| document.distances.get(from).and_then(|row| row.get(to));
    let (one, other) = (rank(one), rank(other));
    let local = Some(&i16::from(LOCAL_DISTANCE));
    at(one, other) == local && at(other, one) == local
}

/// Gives every cpu the number of the set that contains it.
fn assign(
    cpus: &mut BTreeMap<CpuId, Cpu>,
    table: &str,
    sets: ByNumber<CpuSet>,
    change: impl Fn(&mut Cpu, u32),
) -> Result<(), ReadError> {
    let mut seen = CpuSet::new();
    for (number, set) in sets.0 {
        if let Some(id) = set.intersection(&seen).first() {
            return Err(refuse(format!("[{table}] has cpu {id} in two sets")));
        }
        for id in set.iter() {
            change(cpus.get_mut(&id).ok_or_else(|| unknown_cpu(table, id))?, number);
        }
        seen.extend_from(&set);
    }
    Ok(())
}

fn unknown_cpu(table: &str, id: CpuId) -> ReadError {
    refuse(format!("[{table}] names cpu {id}, which the machine does not have"))
}

/// Reads rows of distances, in which -1 is unknown.
fn distances(rows: &[Vec<i16>]) -> Result<Distances, ReadError> {
    let mut distances = Distances::unknown(rows.len());
    for (from, row) in rows.iter().enumerate() {
        if row.len() != rows.len() {
            let message = format!(
                "row {from} of distances has {} values, expected {}",
                row.len(),
                rows.len()
            );
            return Err(refuse(message));
        }
        for (to, &value) in row.iter().enumerate() {
            match u8::try_from(value) {
                Ok(value) => distances.set(from, to, value),
                Err(_) if value == -1 => {}
                Err(_) => {
                    let message = format!(
                        "distance {value} from {from} to {to}: expected 0 to 255, or -1 for unknown"
                    );
                    return Err(refuse(message));
                }
            }
        }
    }
    Ok(distances)
}
