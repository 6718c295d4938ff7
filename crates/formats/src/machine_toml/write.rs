//! Writer of a machine as TOML.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use numalab_topology::{
    AccessAttributes, AccessClass, Cache, CacheKind, Cpu, CpuSet, Device, Machine, MemoryKind,
    MemoryRange, Node,
};
use serde::Serialize;

use super::{FORMAT, MachineFile, MemoryFigures};
use crate::error::WriteError;
use crate::size::format_bytes;

/// Writes a machine with the performance of its memory.
///
/// # Errors
/// As [`write()`].
pub fn write_file(file: &MachineFile) -> Result<String, WriteError> {
    #[derive(Serialize)]
    struct Memory<'a> {
        memory: &'a MemoryFigures,
    }
    let machine = write(&file.machine)?;
    let memory = &file.memory;
    if *memory == MemoryFigures::default() {
        return Ok(machine);
    }
    let memory = toml::to_string(&Memory { memory });
    let memory = memory.map_err(|error| inexpressible(error.to_string()))?;
    Ok(format!("{machine}\n{memory}"))
}

/// Writes a machine.
///
/// # Errors
/// [`WriteError::Inexpressible`] for a number that is too large for TOML (above 2^63 - 1), and for
/// nodes and cpus that contradict each other.
pub fn write(machine: &Machine) -> Result<String, WriteError> {
    check_membership(machine)?;
    check_numbers(machine)?;
    let mut text = String::new();
    distances(machine, &mut text);
    cpus(machine, &mut text);
    for node in &machine.nodes {
        write_node(node, &mut text);
    }
    caches(machine, &mut text);
    for range in &machine.ranges {
        write_range(range, &mut text);
    }
    for access in &machine.access {
        write_access(access, &mut text);
    }
    for tier in &machine.tiers {
        let _ = writeln!(text, "\n[[tier]]\nid = {}\nnodes = \"{}\"", tier.id, tier.nodes);
    }
    text.push_str(&devices(machine)?);
    if let Some(allowed) = &machine.allowed {
        let (cpus, nodes) = (&allowed.cpus, &allowed.memory_nodes);
        let _ = writeln!(text, "\n[allowed]\ncpus = \"{cpus}\"\nmemory_nodes = \"{nodes}\"");
        if !allowed.isolated.is_empty() {
            let _ = writeln!(text, "isolated = \"{}\"", allowed.isolated);
        }
    }
    Ok(text.trim_start().to_owned())
}

/// Writes devices; nothing if there are none.
fn devices(machine: &Machine) -> Result<String, WriteError> {
    #[derive(Serialize)]
    struct Devices<'a> {
        device: &'a [Device],
    }
    if machine.devices.is_empty() {
        return Ok(String::new());
    }
    let text = toml::to_string(&Devices { device: &machine.devices });
    text.map(|text| format!("\n{text}")).map_err(|error| inexpressible(error.to_string()))
}

fn inexpressible(what: String) -> WriteError {
    WriteError::Inexpressible { format: FORMAT, what }
}

fn check_membership(machine: &Machine) -> Result<(), WriteError> {
    for node in machine.nodes.iter().filter(|node| machine.first_with_cpus_of(node).is_none()) {
        let on_node = machine.cpus.iter().filter(|cpu| cpu.node == Some(node.id));
        let cpus: CpuSet = on_node.map(|cpu| cpu.id).collect();
        if cpus != node.cpus {
            let what = format!(
                "that node {} lists cpus `{}`, but cpus `{cpus}` are on it",
                node.id, node.cpus
            );
            return Err(inexpressible(what));
        }
    }
    match machine.cpus.iter().find(|cpu| cpu.node.is_some_and(|id| machine.node(id).is_none())) {
        Some(cpu) => Err(inexpressible(format!("that the node of cpu {} does not exist", cpu.id))),
        None => Ok(()),
    }
}

fn check_numbers(machine: &Machine) -> Result<(), WriteError> {
    let pages = machine.nodes.iter().flat_map(|node| &node.huge_pages);
    let pages = pages.flat_map(|pool| [Some(pool.total), Some(pool.free)]);
    let access = machine.access.iter().flat_map(|access| {
        [
            access.read_latency_ps,
            access.write_latency_ps,
            access.read_bandwidth_mb_per_s,
            access.write_bandwidth_mb_per_s,
        ]
    });
    let too_large = pages.chain(access).flatten().find(|&number| i64::try_from(number).is_err());
    too_large.map_or(Ok(()), |number| Err(inexpressible(format!("the number {number}"))))
}

fn distances(machine: &Machine, text: &mut String) {
    let count = machine.distances.len();
    if count == 0 {
        return;
    }
    text.push_str("# From the row's node to the column's, in order of the nodes; -1 is unknown.\ndistances = [\n");
    for from in 0..count {
        let value =
            |to| machine.distances.get(from, to).map_or("-1".to_owned(), |value| value.to_string());
        let row: Vec<String> = (0..count).map(value).collect();
        let _ = writeln!(text, "  [{}],", row.join(", "));
    }
    text.push_str("]\n");
}

fn cpus(machine: &Machine, text: &mut String) {
    let state = |online| -> CpuSet {
        let cpus = machine.cpus.iter().filter(|cpu| cpu.online == online);
        cpus.map(|cpu| cpu.id).collect()
    };
    let (online, offline) = (state(true), state(false));
    if machine.cpus.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n[cpus]\nonline = \"{online}\"");
    if !offline.is_empty() {
        let _ = writeln!(text, "offline = \"{offline}\"");
    }
    sets(machine, "packages", |cpu| cpu.package, text);
    sets(machine, "l3_groups", |cpu| cpu.l3_group, text);
    sets(machine, "cores", |cpu| cpu.core, text);
    sets(machine, "threads", |cpu| (cpu.thread > 0).then_some(cpu.thread), text);
    if machine.cpus.iter().any(|cpu| cpu.apic_id.is_some()) {
        text.push_str("\n[apic_ids]\n");
    }
    for cpu in &machine.cpus {
        if let Some(apic_id) = cpu.apic_id {
            let _ = writeln!(text, "{} = {apic_id}", cpu.id);
        }
    }
}

fn sets(machine: &Machine, table: &str, number: impl Fn(&Cpu) -> Option<u32>, text: &mut String) {
    let mut sets: BTreeMap<u32, CpuSet> = BTreeMap::new();
    for cpu in &machine.cpus {
        if let Some(number) = number(cpu) {
            sets.entry(number).or_default().insert(cpu.id);
        }
    }
    if !sets.is_empty() {
        let _ = writeln!(text, "\n[{table}]");
    }
    for (number, set) in sets {
        let _ = writeln!(text, "{number} = \"{set}\"");
    }
}

fn write_node(node: &Node, text: &mut String) {
    let _ = writeln!(text, "\n[[node]]\nid = {}", node.id);
    optional(text, "proximity_domain", node.proximity_domain);
    if !node.online {
        text.push_str("online = false\n");
    }
    if !node.cpus.is_empty() {
        let _ = writeln!(text, "cpus = \"{}\"", node.cpus);
    }
    let memory =
        if node.memory_unknown { "unknown".to_owned() } else { format_bytes(node.memory_bytes) };
    let _ = writeln!(text, "memory = \"{memory}\"");
    if let Some(free) = node.free_bytes {
        let _ = writeln!(text, "free = \"{}\"", format_bytes(free));
    }
    let pools = node.huge_pages.iter().map(|pool| {
        let page = format_bytes(pool.page_bytes);
        format!("{{ page = \"{page}\", total = {}, free = {} }}", pool.total, pool.free)
    });
    array(text, "huge_pages", &pools.collect::<Vec<_>>());
    let caches = node.memory_side_caches.iter().map(|cache| {
        let mut table =
            format!("{{ level = {}, size = \"{}\"", cache.level, format_bytes(cache.size_bytes));
        for (key, value) in [("line_bytes", cache.line_bytes), ("ways", cache.ways)] {
            if let Some(value) = value {
                let _ = write!(table, ", {key} = {value}");
            }
        }
        table + " }"
    });
    array(text, "memory_side_caches", &caches.collect::<Vec<_>>());
    if node.cxl {
        text.push_str("cxl = true\n");
    }
}

/// Writes one table for consecutive caches that differ only in the cpus that share them.
fn caches(machine: &Machine, text: &mut String) {
    let key =
        |cache: &Cache| (cache.level, cache.kind, cache.size_bytes, cache.line_bytes, cache.ways);
    for alike in machine.caches.chunk_by(|a, b| key(a) == key(b)) {
        let cache = &alike[0];
        let kind = match cache.kind {
            CacheKind::Data => "data",
            CacheKind::Instruction => "instruction",
            CacheKind::Unified => "unified",
        };
        let _ = writeln!(text, "\n[[cache]]\nlevel = {}\nkind = \"{kind}\"", cache.level);
        if let Some(size) = cache.size_bytes {
            let _ = writeln!(text, "size = \"{}\"", format_bytes(size));
        }
        optional(text, "line_bytes", cache.line_bytes);
        optional(text, "ways", cache.ways);
        let sets = alike.iter().map(|cache| format!("\"{}\"", cache.cpus));
        array(text, "cpus", &sets.collect::<Vec<_>>());
    }
}

fn write_range(range: &MemoryRange, text: &mut String) {
    let length = format_bytes(range.length_bytes);
    let _ = writeln!(
        text,
        "\n[[range]]\nbase = \"{:#x}\"\nlength = \"{length}\"\nnode = {}",
        range.base, range.node
    );
    if range.hot_pluggable {
        text.push_str("hot_pluggable = true\n");
    }
    match range.kind {
        MemoryKind::Ordinary => {}
        MemoryKind::SpecialPurpose => text.push_str("kind = \"special-purpose\"\n"),
        MemoryKind::NonVolatile => text.push_str("kind = \"non-volatile\"\n"),
    }
}

fn write_access(access: &AccessAttributes, text: &mut String) {
    let _ = writeln!(
        text,
        "\n[[access]]\ninitiator = {}\ntarget = {}",
        access.initiator, access.target
    );
    if access.class == AccessClass::Cpu {
        text.push_str("class = \"cpu\"\n");
    }
    optional(text, "read_latency_ps", access.read_latency_ps);
    optional(text, "write_latency_ps", access.write_latency_ps);
    optional(text, "read_bandwidth_mb_per_s", access.read_bandwidth_mb_per_s);
    optional(text, "write_bandwidth_mb_per_s", access.write_bandwidth_mb_per_s);
}

fn optional(text: &mut String, key: &str, value: Option<impl Display>) {
    if let Some(value) = value {
        let _ = writeln!(text, "{key} = {value}");
    }
}

/// Writes an array on one line if it is short, otherwise one item per line; nothing if it is empty.
fn array(text: &mut String, key: &str, items: &[String]) {
    let line = items.join(", ");
    if items.is_empty() {
        return;
    }
    if line.len() < 80 {
        let _ = writeln!(text, "{key} = [{line}]");
        return;
    }
    let _ = writeln!(text, "{key} = [");
    for item in items {
        let _ = writeln!(text, "  {item},");
    }
    text.push_str("]\n");
}
