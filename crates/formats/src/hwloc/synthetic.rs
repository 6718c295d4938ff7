//! hwloc's synthetic descriptions: `pack:2 [numa(memory=8GiB)] l3:4 core:8 pu:2`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use numalab_topology::{Cache, CacheKind, CpuId, CpuSet, Findings, Machine};

use crate::error::WriteError;
use crate::reading::Written;

pub(super) const FORMAT: &str = "a synthetic hwloc description";

/// Writes a regular machine in the form accepted by `lstopo --input` and `HWLOC_SYNTHETIC`. Caches
/// other than L3, distances, and ids of anything but cpus and nodes are lost silently; memory that
/// differs by less than a tenth is a reported loss.
///
/// # Errors
/// [`WriteError::Inexpressible`] if packages, nodes, L3 groups or cores differ in size or do not
/// nest, if a node has no cpus, or if one has a tenth less memory than another.
pub fn write_synthetic(machine: &Machine) -> Result<Written, WriteError> {
    let levels = Levels::of(machine)?;
    let order = levels.order();
    let mut findings = Findings::default();
    let memory = memory_bytes(machine, &mut findings)?;
    let mut parts = Vec::new();
    let mut above = 1;
    for level in &levels.levels {
        let count = level.sets.len() / above;
        above = level.sets.len();
        let mut part = format!("{}:{count}", level.name);
        match level.name {
            "pu" if !ascending(&order) => part += &format!("(indexes={})", join(&order)),
            "l3" => part += &l3_size(machine, &mut findings),
            _ => {}
        }
        if level.has_nodes {
            let _ = write!(part, " [numa(memory={memory}{})]", node_indexes(machine, level));
        }
        parts.push(part);
    }
    Ok(Written { output: parts.join(" "), losses: findings.into_list() })
}

/// One level of equal sets, in the order of the tree.
struct Level {
    name: &'static str,
    sets: Vec<CpuSet>,
    /// True if nodes are attached to the objects of this level.
    has_nodes: bool,
}

struct Levels {
    levels: Vec<Level>,
}

impl Levels {
    fn of(machine: &Machine) -> Result<Self, WriteError> {
        let online = machine.online_cpus();
        let within = |set: &CpuSet| set.intersection(&online);
        let groups = |groups: Vec<numalab_topology::CpuGroup>| -> Vec<CpuSet> {
            let sets = groups.into_iter().map(|group| within(&group.cpus));
            sets.filter(|set| !set.is_empty()).collect()
        };
        let nodes: Vec<CpuSet> = machine.nodes.iter().map(|node| within(&node.cpus)).collect();
        let mut wanted = vec![
            ("pack", groups(machine.packages())),
            ("group", nodes.clone()),
            ("l3", groups(machine.l3_groups())),
            ("core", groups(machine.cores())),
            ("pu", online.iter().map(|cpu| CpuSet::from_iter([cpu])).collect()),
        ];
        wanted.retain(|(_, sets)| !sets.is_empty());
        for (name, sets) in &wanted {
            check_equal(name, sets, &online)?;
        }
        // Larger sets contain smaller ones; equal sets keep the usual order.
        wanted.sort_by_key(|(_, sets)| sets.len());
        let same =
            |a: &[CpuSet], b: &[CpuSet]| a.iter().all(|set| b.contains(set)) && a.len() == b.len();
        let host = wanted
            .iter()
            .find(|(name, sets)| *name != "group" && *name != "pu" && same(sets, &nodes));
        let host = host.map_or("group", |(name, _)| *name);
        if host != "group" {
            wanted.retain(|(name, _)| *name != "group");
        }
        let mut levels: Vec<Level> = Vec::new();
        for (name, mut sets) in wanted {
            if let Some(above) = levels.last() {
                sort_below(name, &mut sets, &above.sets)?;
            } else {
                sets.sort_by_key(CpuSet::first);
            }
            let has_nodes = name == host && !nodes.is_empty();
            levels.push(Level { name, sets, has_nodes });
        }
        Ok(Self { levels })
    }

    fn order(&self) -> Vec<CpuId> {
        let innermost = self.levels.last().map(|level| level.sets.iter());
        innermost.into_iter().flatten().flat_map(CpuSet::iter).collect()
    }
}

/// Checks that all sets have one size and cover the machine.
fn check_equal(name: &str, sets: &[CpuSet], online: &CpuSet) -> Result<(), WriteError> {
    let size = sets.first().map_or(0, CpuSet::len);
    let covered: CpuSet = sets.iter().flat_map(CpuSet::iter).collect();
    let total: usize = sets.iter().map(CpuSet::len).sum();
    if size > 0
        && sets.iter().all(|set| set.len() == size)
        && covered == *online
        && total == online.len()
    {
        return Ok(());
    }
    let lists: Vec<String> = sets.iter().map(|set| format!("`{set}`")).collect();
    let level = if name == "group" { "nodes" } else { name };
    Err(WriteError::Inexpressible {
        format: FORMAT,
        what: format!("{level} of unequal cpus: {}", lists.join(" ")),
    })
}

/// Orders sets by the sets above that contain them.
fn sort_below(name: &str, sets: &mut [CpuSet], above: &[CpuSet]) -> Result<(), WriteError> {
    let parent = |set: &CpuSet| above.iter().position(|outer| set.is_subset(outer));
    if let Some(lost) = sets.iter().find(|set| parent(set).is_none()) {
        return Err(WriteError::Inexpressible {
            format: FORMAT,
            what: format!("that the {name} of cpus `{lost}` is not inside one larger object"),
        });
    }
    sets.sort_by_key(|set| (parent(set), set.first()));
    Ok(())
}

/// Returns the memory of each node. Memory that firmware and kernel reserve makes equal nodes
/// differ by a few percent; a description has one size for all.
fn memory_bytes(machine: &Machine, findings: &mut Findings) -> Result<u64, WriteError> {
    let sizes = || machine.nodes.iter().map(|node| node.memory_bytes);
    let least = sizes().min().unwrap_or_default();
    let most = sizes().max().unwrap_or_default();
    if most - least > most / 10 {
        let list: Vec<String> =
            machine.nodes.iter().map(|n| format!("{} of node {}", n.memory_bytes, n.id)).collect();
        let what = format!("nodes of unequal memory: {} bytes", list.join(", "));
        return Err(WriteError::Inexpressible { format: FORMAT, what });
    }
    if most > least {
        let message = format!("nodes have unequal memory; all are given the least, {least} bytes");
        findings.warning("memory-unequal", "nodes".to_owned(), message);
    }
    Ok(least)
}

/// Returns the size of the L3s if all have the same; a description has one for all.
fn l3_size(machine: &Machine, findings: &mut Findings) -> String {
    let is_l3 = |cache: &&Cache| cache.level == 3 && cache.kind == CacheKind::Unified;
    let sizes: BTreeSet<Option<u64>> =
        machine.caches.iter().filter(is_l3).map(|cache| cache.size_bytes).collect();
    match sizes.iter().collect::<Vec<_>>()[..] {
        [Some(bytes)] => format!("(size={bytes})"),
        [] | [None] => String::new(),
        _ => {
            let message = "L3s have unequal sizes, so none is given".to_owned();
            findings.warning("l3-unequal", "caches".to_owned(), message);
            String::new()
        }
    }
}

/// Returns the node numbers in the order of the level, if that is not 0, 1, 2...
fn node_indexes(machine: &Machine, level: &Level) -> String {
    let node_of = |set: &CpuSet| machine.cpu(set.first()?).and_then(|cpu| cpu.node);
    let ids: Vec<_> = level.sets.iter().filter_map(node_of).collect();
    if (0u32..).zip(&ids).all(|(number, id)| id.0 == number) {
        return String::new();
    }
    format!(" indexes={}", join(&ids))
}

fn ascending(order: &[CpuId]) -> bool {
    (0u32..).zip(order).all(|(number, cpu)| cpu.0 == number)
}

fn join<T: ToString>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
