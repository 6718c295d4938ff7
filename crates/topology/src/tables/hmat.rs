//! Conversion of access attributes and memory-side caches from and to a HMAT.

use alloc::collections::BTreeMap;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use numalab_acpi::hmat::{
    Associativity, Cache, CacheAttributes, CellValue, DataType, Entry, Locality,
    ProximityAttributes, ProximityFlags, WritePolicy,
};
use numalab_acpi::{Hmat, List, Located};

use super::domains::{Domains, domain_of};
use crate::access::AccessAttributes;
use crate::finding::{Finding, Severity};
use crate::id::NodeId;
use crate::machine::Machine;
use crate::node::{MemorySideCache, Node};

type Figure = fn(&AccessAttributes) -> Option<u64>;

/// The largest value of a cell; the next one means unreachable.
const MOST: u64 = 0xfffe;

/// Copies the table's values for nodes that exist.
pub(super) fn read(table: &Hmat<'_>, domains: &Domains, machine: &mut Machine) {
    let mut pairs: BTreeMap<(NodeId, NodeId), Figures> = BTreeMap::new();
    for Located { entry: matrix, .. } in table.localities() {
        let Some(data_type) = matrix.data_type().filter(|_| matrix.flags.is_memory()) else {
            continue;
        };
        for (from, to, value) in matrix.cells() {
            let reading = table.reading(&matrix, value);
            if let (Some(from), Some(to)) = (domains.node(from), domains.node(to)) {
                pairs.entry((from, to)).or_default().learn(data_type, reading);
            }
        }
    }
    let access = pairs.into_iter().map(|((from, to), figures)| figures.between(from, to));
    machine.access = access.flatten().collect();
    for Located { entry: cache, .. } in table.caches() {
        if let Some(id) = domains.node(cache.memory) {
            machine.nodes[id.0 as usize].memory_side_caches.push(side_cache(&cache));
        }
    }
}

/// The values from matrices for one pair: read and write latency, read and write bandwidth.
#[derive(Default)]
struct Figures([Option<MatrixValue>; 4]);

/// A value from a matrix, or the statement that there is none.
struct MatrixValue {
    /// True if it is from a matrix of reads or of writes, not of both.
    specific: bool,
    value: Option<u64>,
}

impl Figures {
    /// Takes a cell into account. A matrix of reads or of writes has precedence over one of both,
    /// an earlier matrix over a later one, and an unknown value is ignored.
    fn learn(&mut self, data_type: DataType, reading: CellValue) {
        let value = match reading {
            CellValue::Value(value) => Some(value),
            CellValue::Unreachable => None,
            CellValue::Unknown | CellValue::Meaningless => return,
        };
        let (places, specific) = match data_type {
            DataType::AccessLatency => (0..2, false),
            DataType::ReadLatency => (0..1, true),
            DataType::WriteLatency => (1..2, true),
            DataType::AccessBandwidth => (2..4, false),
            DataType::ReadBandwidth => (2..3, true),
            DataType::WriteBandwidth => (3..4, true),
        };
        for figure in &mut self.0[places] {
            if figure.as_ref().is_none_or(|known| specific && !known.specific) {
                *figure = Some(MatrixValue { specific, value });
            }
        }
    }

    fn between(self, initiator: NodeId, target: NodeId) -> Option<AccessAttributes> {
        let [read_latency, write_latency, read_bandwidth, write_bandwidth] =
            self.0.map(|known| known.and_then(|known| known.value));
        let attributes = AccessAttributes {
            read_latency_ps: read_latency,
            write_latency_ps: write_latency,
            read_bandwidth_mb_per_s: read_bandwidth,
            write_bandwidth_mb_per_s: write_bandwidth,
            ..AccessAttributes::default()
        };
        let empty = attributes == AccessAttributes::default();
        (!empty).then_some(AccessAttributes { initiator, target, ..attributes })
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

/// The entries of one table, with the data that they borrow.
pub(super) struct Parts {
    initiators: Vec<u32>,
    targets: Vec<u32>,
    /// Data type, base unit, and cells row by row.
    matrices: Vec<(DataType, u64, Vec<u16>)>,
    others: Vec<Entry<'static>>,
    /// Findings about values that do not fit into 16 bits unchanged.
    pub(super) findings: Vec<Finding>,
}

impl Parts {
    /// Returns `None` if the machine has no data that a HMAT can represent.
    pub(super) fn of(machine: &Machine) -> Option<Self> {
        let caches = machine.nodes.iter().any(|node| !node.memory_side_caches.is_empty());
        if machine.access.is_empty() && !caches {
            return None;
        }
        let is_there = |node: &&Node| node.memory_bytes > 0 || !node.cpus.is_empty();
        let domain = |id| machine.node(id).filter(is_there).map(domain_of);
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
        let (mut matrices, mut findings) = (Vec::new(), Vec::new());
        for (kind, get) in kinds {
            let pairs =
                initiators.iter().flat_map(|&from| targets.iter().map(move |&to| (from, to)));
            let values: Vec<u64> =
                pairs.map(|(from, to)| value(from, to, get).unwrap_or(0)).collect();
            if values.iter().any(|&value| value > 0) {
                let unit = base_unit(&values);
                if values.iter().any(|value| value % unit > 0) {
                    findings.push(rounded(kind, unit));
                }
                let cells = values.iter().map(|&value| cell(value, unit)).collect();
                matrices.push((kind, unit, cells));
            }
        }
        let mut others: Vec<Entry<'static>> = machine.nodes.iter().filter_map(attached).collect();
        others.extend(machine.nodes.iter().flat_map(side_caches));
        Some(Self { initiators, targets, matrices, others, findings })
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

fn rounded(kind: DataType, unit: u64) -> Finding {
    let of = match kind {
        DataType::ReadLatency | DataType::WriteLatency | DataType::AccessLatency => "ps",
        DataType::ReadBandwidth | DataType::WriteBandwidth | DataType::AccessBandwidth => "MB/s",
    };
    Finding {
        severity: Severity::Note,
        code: "figures-rounded".to_string(),
        place: "HMAT".to_string(),
        message: format!("figures of {kind:?} are rounded to multiples of {unit} {of}"),
    }
}

/// Returns the largest unit that keeps all values exact, or the smallest one in which they fit.
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

/// Converts a value to units, rounded; a known value never becomes 0, which means unknown.
fn cell(value: u64, unit: u64) -> u16 {
    if value == 0 {
        return 0;
    }
    let rounded = (value / unit).saturating_add(u64::from(value % unit > unit / 2));
    u16::try_from(rounded.clamp(1, MOST)).unwrap_or(u16::MAX - 1)
}

/// Returns the link of a node's memory to its own cpus, if it has both.
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
