//! Access attributes and memory-side caches, from a HMAT and to one.

use alloc::collections::BTreeMap;
use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use numalab_acpi::hmat::{
    Access, Associativity, Cache, CacheAttributes, DataType, Entry, Locality, ProximityAttributes,
    ProximityFlags, WritePolicy,
};
use numalab_acpi::{Hmat, List, Located};

use super::domains::Domains;
use super::write::domain_of;
use crate::access::AccessAttributes;
use crate::machine::Machine;
use crate::node::{MemorySideCache, Node};
use crate::order;

/// One figure of an access.
type Figure = fn(&AccessAttributes) -> Option<u64>;

/// The largest value that a cell holds; the next one means unreachable.
const MOST: u64 = 0xfffe;

/// Takes over what the table says of nodes that are there.
pub(super) fn read(table: &Hmat<'_>, domains: &Domains, machine: &mut Machine) {
    let memory = table.localities().filter(|located| located.entry.flags.is_memory());
    let cells = memory.flat_map(|located| located.entry.cells());
    let mut pairs: Vec<(u32, u32)> =
        cells.map(|(initiator, target, _)| (initiator, target)).collect();
    order::by_key(&mut pairs, |&pair| pair);
    pairs.dedup();
    let mut access: Vec<AccessAttributes> = Vec::new();
    for (from, to) in pairs {
        let (Some(initiator), Some(target)) = (domains.node(from), domains.node(to)) else {
            continue;
        };
        let latency = |access| table.latency_ps(from, to, access)?.value();
        let bandwidth = |access| table.bandwidth_mb_per_s(from, to, access)?.value();
        let attributes = AccessAttributes {
            read_latency_ps: latency(Access::Read),
            write_latency_ps: latency(Access::Write),
            read_bandwidth_mb_per_s: bandwidth(Access::Read),
            write_bandwidth_mb_per_s: bandwidth(Access::Write),
            ..AccessAttributes::default()
        };
        if attributes != AccessAttributes::default() {
            access.push(AccessAttributes { initiator, target, ..attributes });
        }
    }
    order::by_key(&mut access, |access| (access.initiator, access.target));
    machine.access = access;
    for Located { entry: cache, .. } in table.caches() {
        let id = domains.node(cache.memory);
        if let Some(node) = machine.nodes.iter_mut().find(|node| Some(node.id) == id) {
            node.memory_side_caches.push(side_cache(&cache));
        }
    }
}

fn side_cache(cache: &Cache<'_>) -> MemorySideCache {
    let attributes = cache.attributes;
    MemorySideCache {
        level: attributes.level(),
        size_bytes: cache.size_bytes,
        line_bytes: Some(u32::from(attributes.line_bytes())).filter(|&bytes| bytes > 0),
        ways: (attributes.associativity() == Associativity::DirectMapped).then_some(1),
    }
}

/// The entries of one table, with what they borrow.
pub(super) struct Parts {
    initiators: Vec<u32>,
    targets: Vec<u32>,
    /// Data type, base unit, cells row by row.
    matrices: Vec<(DataType, u64, Vec<u16>)>,
    others: Vec<Entry<'static>>,
}

impl Parts {
    /// `None` if the machine says nothing that a HMAT carries.
    pub(super) fn of(machine: &Machine) -> Option<Self> {
        let caches = machine.nodes.iter().any(|node| !node.memory_side_caches.is_empty());
        if machine.access.is_empty() && !caches {
            return None;
        }
        let domain = |id| machine.node(id).map(domain_of);
        let mut cells: BTreeMap<(u32, u32), &AccessAttributes> = BTreeMap::new();
        for access in &machine.access {
            if let (Some(from), Some(to)) = (domain(access.initiator), domain(access.target)) {
                cells.insert((from, to), access);
            }
        }
        let unique = |domains: BTreeSet<u32>| domains.into_iter().collect::<Vec<u32>>();
        let initiators = unique(cells.keys().map(|&(from, _)| from).collect());
        let targets = unique(cells.keys().map(|&(_, to)| to).collect());
        let value = |from, to, get: Figure| cells.get(&(from, to)).and_then(|access| get(access));
        let kinds: [(DataType, Figure); 4] = [
            (DataType::ReadLatency, |access| access.read_latency_ps),
            (DataType::WriteLatency, |access| access.write_latency_ps),
            (DataType::ReadBandwidth, |access| access.read_bandwidth_mb_per_s),
            (DataType::WriteBandwidth, |access| access.write_bandwidth_mb_per_s),
        ];
        let mut matrices = Vec::new();
        for (kind, get) in kinds {
            let pairs =
                initiators.iter().flat_map(|&from| targets.iter().map(move |&to| (from, to)));
            let values: Vec<u64> =
                pairs.map(|(from, to)| value(from, to, get).unwrap_or(0)).collect();
            if values.iter().any(|&value| value > 0) {
                let unit = base_unit(&values);
                let cells = values.iter().map(|&value| cell(value, unit)).collect();
                matrices.push((kind, unit, cells));
            }
        }
        let mut others: Vec<Entry<'static>> = machine.nodes.iter().filter_map(attached).collect();
        others.extend(machine.nodes.iter().flat_map(side_caches));
        Some(Self { initiators, targets, matrices, others })
    }

    pub(super) fn entries(&self) -> Vec<Entry<'_>> {
        let mut entries: Vec<Entry<'_>> = self.others.clone();
        entries.extend(self.matrices.iter().map(|(kind, base_unit, cells)| {
            Entry::Locality(Locality {
                data_type: (*kind).into(),
                base_unit: *base_unit,
                initiators: List::Values(&self.initiators),
                targets: List::Values(&self.targets),
                values: List::Values(cells),
                ..Locality::default()
            })
        }));
        entries
    }
}

/// The largest unit that keeps all values exact, or the smallest in which they fit.
fn base_unit(values: &[u64]) -> u64 {
    let common = values.iter().fold(0, |a, &b| greatest_common_divisor(a, b)).max(1);
    let largest = values.iter().copied().max().unwrap_or_default();
    if largest / common <= MOST { common } else { largest.div_ceil(MOST) }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A value in units, rounded; a known one never becomes 0, which means unknown.
fn cell(value: u64, unit: u64) -> u16 {
    if value == 0 {
        return 0;
    }
    let rounded = (value / unit).saturating_add(u64::from(value % unit > unit / 2));
    u16::try_from(rounded.clamp(1, MOST)).unwrap_or(u16::MAX - 1)
}

/// The link of a node's memory to its own cpus, if it has both.
fn attached(node: &Node) -> Option<Entry<'static>> {
    let domain = domain_of(node);
    let own = !node.cpus.is_empty();
    (node.memory_bytes > 0).then(|| {
        Entry::Proximity(ProximityAttributes {
            flags: if own { ProximityFlags::INITIATOR_VALID } else { ProximityFlags::default() },
            initiator: if own { domain } else { 0 },
            memory: domain,
            ..ProximityAttributes::default()
        })
    })
}

fn side_caches(node: &Node) -> Vec<Entry<'static>> {
    let levels = u8::try_from(node.memory_side_caches.len()).unwrap_or(u8::MAX);
    let mut entries = vec![];
    for cache in &node.memory_side_caches {
        let how = match cache.ways {
            None => Associativity::None,
            Some(1) => Associativity::DirectMapped,
            Some(_) => Associativity::Complex,
        };
        let line = cache.line_bytes.and_then(|bytes| u16::try_from(bytes).ok()).unwrap_or_default();
        entries.push(Entry::Cache(Cache {
            memory: domain_of(node),
            size_bytes: cache.size_bytes,
            attributes: CacheAttributes::new(levels, cache.level, how, WritePolicy::None, line),
            ..Cache::default()
        }));
    }
    entries
}
