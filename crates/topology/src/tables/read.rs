//! Conversion of ACPI tables to a machine.

use alloc::vec::Vec;

use numalab_acpi::cedt::Entry as CedtEntry;
use numalab_acpi::srat::{Memory, MemoryFlags, ProcessorId};
use numalab_acpi::{Cedt, MAX_PROCESSORS, Madt, Slit, Srat, Tables};

use super::domains::Domains;
use super::hmat;
use crate::cpu::Cpu;
use crate::distance::Distances;
use crate::id::{CpuId, NodeId};
use crate::machine::Machine;
use crate::memory::{MemoryKind, MemoryRange};
use crate::node::Node;
use crate::order;

impl Machine {
    /// Returns the machine that tables describe, numbered as Linux would: nodes from 0 in order of
    /// appearance of their domains (processors before memory), cpus from 0 in order of the MADT,
    /// enabled ones before those that can come online later, which are offline. If the MADT has no
    /// processors, the processors of the SRAT are the cpus.
    ///
    /// A node's memory is that of its ranges that are not hot-pluggable: tables do not say if there
    /// is any in the others. A CXL window that begins in no range of the SRAT is a separate node,
    /// offline, as in Linux. Packages, cores and caches are not in tables. Without a SRAT there are
    /// no nodes. Domains beyond [`numalab_acpi::MAX_DOMAINS`] and processors beyond
    /// [`numalab_acpi::MAX_PROCESSORS`] are left out. Problems of the tables are found by
    /// [`numalab_acpi::check`], and problems of the machine by [`Machine::validate`].
    pub fn from_tables(tables: &Tables<'_>) -> Self {
        let mut domains = tables.srat.as_ref().map(Domains::of).unwrap_or_default();
        let mut ranges =
            tables.srat.as_ref().map(|srat| ranges(srat, &domains)).unwrap_or_default();
        let windows = match (&tables.srat, &tables.cedt) {
            (Some(_), Some(cedt)) => windows(cedt, &ranges, &mut domains),
            _ => Vec::new(),
        };
        let cpus = cpus(tables.madt.as_ref(), tables.srat.as_ref(), &domains);
        let mut nodes = nodes(&domains, &cpus, &ranges);
        for window in &windows {
            nodes[window.node.0 as usize].online = false;
        }
        ranges.extend(windows);
        order::by_key(&mut ranges, |range| range.base);
        let mut machine = Self {
            distances: tables
                .slit
                .as_ref()
                .map(|slit| distances(slit, &domains))
                .unwrap_or_default(),
            nodes,
            cpus,
            ranges,
            ..Self::default()
        };
        if let Some(table) = &tables.hmat {
            hmat::read(table, &domains, &mut machine);
        }
        machine
    }
}

/// Returns the enabled, non-empty memory ranges.
fn ranges(srat: &Srat<'_>, domains: &Domains) -> Vec<MemoryRange> {
    let used = srat.memory().filter(|memory| memory.is_enabled() && memory.length_bytes > 0);
    let range = |memory: Memory| {
        let has = |flag| memory.flags.contains(flag);
        let kind = if has(MemoryFlags::NON_VOLATILE) {
            MemoryKind::NonVolatile
        } else if has(MemoryFlags::SPECIFIC_PURPOSE) {
            MemoryKind::SpecialPurpose
        } else {
            MemoryKind::Ordinary
        };
        Some(MemoryRange {
            base: memory.base,
            length_bytes: memory.length_bytes,
            node: domains.node(memory.domain)?,
            hot_pluggable: has(MemoryFlags::HOT_PLUGGABLE),
            kind,
        })
    };
    used.filter_map(range).collect()
}

/// Returns the CXL windows that are not in the SRAT, each with a separate node.
fn windows(cedt: &Cedt<'_>, known: &[MemoryRange], domains: &mut Domains) -> Vec<MemoryRange> {
    let mut windows = Vec::new();
    let known = Covered::of(known);
    for located in cedt.entries() {
        let CedtEntry::Window(window) = located.entry else {
            continue;
        };
        if window.size_bytes == 0 || known.holds(window.base) {
            continue;
        }
        let Some(node) = domains.unused().and_then(|domain| domains.add(domain)) else {
            continue;
        };
        windows.push(MemoryRange {
            base: window.base,
            length_bytes: window.size_bytes,
            node,
            hot_pluggable: true,
            kind: MemoryKind::SpecialPurpose,
        });
    }
    windows
}

/// Addresses in ranges, for lookup.
struct Covered {
    /// First addresses in order, each with the last address of all ranges up to it.
    ends: Vec<(u64, u64)>,
}

impl Covered {
    fn of(ranges: &[MemoryRange]) -> Self {
        let last = |range: &MemoryRange| range.base.saturating_add(range.length_bytes - 1);
        let mut ends: Vec<(u64, u64)> =
            ranges.iter().map(|range| (range.base, last(range))).collect();
        order::by_key(&mut ends, |&(base, _)| base);
        let mut furthest = 0;
        for (_, end) in &mut ends {
            furthest = furthest.max(*end);
            *end = furthest;
        }
        Self { ends }
    }

    fn holds(&self, address: u64) -> bool {
        let behind = self.ends.partition_point(|&(base, _)| base <= address);
        self.ends[..behind].last().is_some_and(|&(_, end)| address <= end)
    }
}

fn cpus(madt: Option<&Madt<'_>>, srat: Option<&Srat<'_>>, domains: &Domains) -> Vec<Cpu> {
    let mut homes: Vec<(ProcessorId, NodeId)> = Vec::new();
    let mut listed: Vec<(ProcessorId, bool)> = Vec::new();
    for processor in
        srat.into_iter().flat_map(Srat::processors).filter(|cpu| cpu.enabled).take(MAX_PROCESSORS)
    {
        if let Some(node) = domains.node(processor.domain) {
            homes.push((processor.id, node));
        }
        listed.push((processor.id, true));
    }
    if let Some(madt) = madt {
        let usable =
            madt.processors().filter(|cpu| cpu.enabled || cpu.online_capable).take(MAX_PROCESSORS);
        let in_madt: Vec<_> = usable.map(|cpu| (cpu.id, cpu.enabled)).collect();
        // A MADT without known processors belongs to an unknown architecture.
        if !in_madt.is_empty() {
            listed = in_madt;
        }
    }
    // Of two entries for one processor the first one counts.
    order::by_key(&mut homes, |&(id, _)| id);
    homes.dedup_by_key(|&mut (id, _)| id);
    let node_of = |id: ProcessorId| {
        homes.binary_search_by_key(&id, |&(id, _)| id).ok().map(|place| homes[place].1)
    };
    let listed = once_each(listed);
    let cpu = |(number, (id, online)): (u32, (ProcessorId, bool))| Cpu {
        id: CpuId(number),
        online,
        node: node_of(id),
        apic_id: match id {
            ProcessorId::Apic(apic_id) => Some(apic_id),
            ProcessorId::Gicc(_) | ProcessorId::Rintc(_) => None,
        },
        ..Cpu::default()
    };
    (0u32..).zip(listed).map(cpu).collect()
}

/// Returns processors in order of the list, each once, enabled ones before the others.
fn once_each(listed: Vec<(ProcessorId, bool)>) -> Vec<(ProcessorId, bool)> {
    let mut places: Vec<usize> = (0..listed.len()).collect();
    let rank = |place: usize| (!listed[place].1, place);
    order::by_key(&mut places, |&place| (listed[place].0, rank(place)));
    places.dedup_by_key(|&mut place| listed[place].0);
    order::by_key(&mut places, |&place| rank(place));
    places.into_iter().map(|place| listed[place]).collect()
}

fn nodes(domains: &Domains, cpus: &[Cpu], ranges: &[MemoryRange]) -> Vec<Node> {
    let node =
        |(domain, id)| Node { id, proximity_domain: Some(domain), online: true, ..Node::default() };
    let mut nodes: Vec<Node> = domains.iter().map(node).collect();
    // Ids are dense from 0, so they serve as positions from here on.
    order::by_key(&mut nodes, |node| node.id);
    for cpu in cpus {
        if let Some(id) = cpu.node {
            nodes[id.0 as usize].cpus.insert(cpu.id);
        }
    }
    for range in ranges.iter().filter(|range| !range.hot_pluggable) {
        let memory_bytes = &mut nodes[range.node.0 as usize].memory_bytes;
        *memory_bytes = memory_bytes.saturating_add(range.length_bytes);
    }
    nodes
}

/// Reads distances; rows and columns of the SLIT are domains, and nodes beyond it have no distance.
fn distances(slit: &Slit<'_>, domains: &Domains) -> Distances {
    let mut distances = Distances::unknown(domains.iter().count());
    for (from_domain, from) in domains.iter() {
        for (to_domain, to) in domains.iter() {
            if let Some(distance) = slit.distance(from_domain.0, to_domain.0) {
                distances.set(from.0 as usize, to.0 as usize, distance);
            }
        }
    }
    distances
}
