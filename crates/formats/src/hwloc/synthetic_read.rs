//! Reads synthetic descriptions as hwloc does (`HWLOC_SYNTHETIC`, `lstopo --of synthetic`).

use numalab_topology::{Cache, CacheKind, CpuId, CpuSet, Findings, MAX_ID, Machine, NodeId};

use super::synthetic::FORMAT;
use super::synthetic_indexes;
use super::synthetic_items::{self, Attributes, Item, ItemKind, items};
use crate::assembly::Assembly;
use crate::error::ReadError;
use crate::pasted;
use crate::reading::Reading;

/// The most cpus of a description: every cpu number is below [`MAX_ID`].
const MOST_CPUS: usize = MAX_ID as usize + 1;

/// Returns true if a text looks like a synthetic description: it is not XML, and has levels such as
/// `core:8`, or nothing but their counts.
pub fn is_synthetic(text: &str) -> bool {
    let is_level = |word: &str| {
        let count = word.split_once(':').filter(|(name, _)| synthetic_items::kind(name).is_some());
        count.is_some_and(|(_, count)| count.starts_with(|c: char| c.is_ascii_digit()))
    };
    let is_count = |word: &str| word.parse::<u32>().is_ok();
    let mut words = text.split_whitespace();
    let has_only_counts = words.clone().count() > 1 && words.clone().all(is_count);
    !text.contains('<') && (has_only_counts || words.any(is_level))
}

/// Reads a synthetic description with a type for each level: `pack:2 [numa(memory=8GiB)] core:8
/// pu:2`. Memory that is not given is unknown.
///
/// # Errors
/// [`ReadError::Markup`] for a level of another form and for indexes that do not number the objects
/// of their level; [`ReadError::TooMany`] for more cpus or nodes than a machine has.
pub fn read_synthetic(text: &str) -> Result<Reading, ReadError> {
    let mut findings = Findings::default();
    let lines = pasted::lines(text, &mut findings).into_iter().map(|(_, line)| line);
    let text: Vec<String> = lines.filter(|line| !pasted::is_prompt(line)).collect();
    let items = items(&text.join(" "))?;
    let cpus = cpu_count(&items)?;
    let innermost = items.split_last().filter(|(item, _)| item.kind == ItemKind::Pu);
    let (innermost, above) =
        innermost.ok_or(ReadError::Absent { format: FORMAT, what: "last level such as `pu:2`" })?;
    let numbers = synthetic_indexes::numbers(innermost.attributes.indexes.as_deref(), cpus, above)?;
    let mut assembly = Assembly::default();
    numbers.iter().for_each(|&number| {
        assembly.cpu(CpuId(number));
    });
    place(&items, &numbers, &mut assembly)?;
    let _ = assembly.take_claims();
    let mut machine = assembly.finish(FORMAT)?;
    let mut above = 1;
    for item in items.iter().filter(|item| !item.is_attached) {
        above *= item.count;
        group(item, &numbers, above, &mut machine);
    }
    machine.caches.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
    Ok(Reading { value: machine, findings: findings.into_list() })
}

fn cpu_count(items: &[Item]) -> Result<usize, ReadError> {
    let counts = items.iter().filter(|item| !item.is_attached).map(|item| item.count);
    let cpus = counts.fold(1, usize::saturating_mul);
    if cpus > MOST_CPUS {
        let (what, most) = ("cpus", MOST_CPUS);
        return Err(ReadError::TooMany { format: FORMAT, what, found: cpus, most });
    }
    Ok(cpus)
}

/// Puts cpus and memory on nodes. Nodes are numbered from the inside out, object by object; the
/// first that is attached to cpus takes them. Without nodes, hwloc takes the machine as one.
fn place(items: &[Item], numbers: &[u32], assembly: &mut Assembly) -> Result<(), ReadError> {
    let mut nodes: Vec<(usize, usize, usize, &Attributes)> = Vec::new();
    let mut objects = 1;
    for (depth, item) in items.iter().enumerate() {
        if !item.is_attached {
            objects *= item.count;
        }
        if item.kind == ItemKind::Node {
            let cpus = numbers.len() / objects;
            // An object's nodes follow those of the objects inside it.
            nodes.extend((0..objects).map(|o| ((o + 1) * cpus, cpus, depth, &item.attributes)));
        }
        let most = numalab_topology::MAX_NODES;
        if nodes.len() > most {
            let (what, found) = ("nodes", nodes.len());
            return Err(ReadError::TooMany { format: FORMAT, what, found, most });
        }
    }
    let unsaid = Attributes::default();
    if nodes.is_empty() {
        nodes.push((numbers.len(), numbers.len(), 0, &unsaid));
    }
    nodes.sort_by_key(|&(end, cpus, depth, _)| (end, cpus, depth));
    // One list has the indexes of all nodes, whatever the level at which it is given.
    let has_indexes =
        |item: &Item| item.kind == ItemKind::Node && item.attributes.indexes.is_some();
    let (text, above) = match items.iter().rposition(has_indexes) {
        Some(at) => (items[at].attributes.indexes.as_deref(), &items[..at]),
        None => (None, items),
    };
    let ids = synthetic_indexes::numbers(text, nodes.len(), above)?;
    for ((end, cpus, _, attributes), id) in nodes.into_iter().zip(ids) {
        let set: CpuSet = numbers[end - cpus..end].iter().map(|&number| CpuId(number)).collect();
        assembly.place(&set, NodeId(id), &format!("node {id}"));
        let node = assembly.node(NodeId(id));
        node.memory_bytes = attributes.memory_bytes.unwrap_or_default();
        node.memory_unknown = attributes.memory_bytes.is_none();
    }
    Ok(())
}

/// Gives the cpus their object on a level of `objects` objects.
fn group(item: &Item, numbers: &[u32], objects: usize, machine: &mut Machine) {
    let mut sets: Vec<CpuSet> = numbers
        .chunks(numbers.len() / objects)
        .map(|chunk| chunk.iter().map(|&number| CpuId(number)).collect())
        .collect();
    sets.sort_by_key(CpuSet::first);
    for (number, cpus) in (0u32..).zip(sets) {
        for (thread, id) in (0u32..).zip(cpus.iter()) {
            let Some(cpu) = machine.cpu_mut(id) else { continue };
            match item.kind {
                ItemKind::Package => cpu.package = Some(number),
                ItemKind::Core => (cpu.core, cpu.thread) = (Some(number), thread),
                ItemKind::Cache(3, CacheKind::Unified) => cpu.l3_group = Some(number),
                _ => {}
            }
        }
        // A level without a size shows which cpus share a cache, but nothing about the cache.
        let size_bytes = item.attributes.size_bytes;
        if let (ItemKind::Cache(level, kind), Some(_)) = (item.kind, size_bytes) {
            let (line_bytes, ways) = (None, None);
            machine.caches.push(Cache { level, kind, size_bytes, line_bytes, ways, cpus });
        }
    }
}
