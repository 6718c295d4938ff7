//! The keys of the format.

use std::collections::BTreeMap;
use std::str::FromStr;

use numalab_topology::{
    AccessAttributes, AccessClass, Allowed, Cache, CacheKind, CpuSet, Device, HugePagePool,
    MemoryKind, MemoryRange, MemorySideCache, MemoryTier, Node, NodeId, NodeSet, ProximityDomain,
};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use super::memory::MemoryFigures;
use crate::size::parse_with_unit;

/// The content of a machine file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    #[serde(default)]
    pub(super) distances: Vec<Vec<i16>>,
    pub(super) cpus: Option<CpuTable>,
    #[serde(default)]
    pub(super) packages: ByNumber<CpuSet>,
    #[serde(default)]
    pub(super) cores: ByNumber<CpuSet>,
    #[serde(default)]
    pub(super) l3_groups: ByNumber<CpuSet>,
    #[serde(default)]
    pub(super) threads: ByNumber<CpuSet>,
    #[serde(default)]
    pub(super) apic_ids: ByNumber<u32>,
    #[serde(default)]
    pub(super) node: Vec<NodeTable>,
    #[serde(default)]
    pub(super) cache: Vec<CacheTable>,
    #[serde(default)]
    pub(super) range: Vec<RangeTable>,
    #[serde(default)]
    pub(super) access: Vec<AccessTable>,
    #[serde(default)]
    pub(super) tier: Vec<TierTable>,
    #[serde(default)]
    pub(super) device: Vec<Device>,
    pub(super) allowed: Option<AllowedTable>,
    #[serde(default)]
    pub(super) memory: MemoryFigures,
}

/// A table with numbers as keys.
pub(super) struct ByNumber<T>(pub(super) BTreeMap<u32, T>);

impl<T> Default for ByNumber<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ByNumber<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let table = BTreeMap::<String, T>::deserialize(deserializer)?;
        let mut numbers = BTreeMap::new();
        for (key, value) in table {
            let number = u32::from_str(&key)
                .map_err(|_| D::Error::custom(format!("key `{key}`: expected a number")))?;
            if numbers.insert(number, value).is_some() {
                return Err(D::Error::custom(format!("number {number} is given twice")));
            }
        }
        Ok(Self(numbers))
    }
}

/// A size such as `"64G"`.
#[derive(Clone, Copy, Default)]
pub(super) struct SizeText(u64);

impl<'de> Deserialize<'de> for SizeText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_with_unit(&text).map(Self).map_err(D::Error::custom)
    }
}

/// The memory of a node, such as `"64G"`, or `"unknown"`.
#[derive(Clone, Copy)]
pub(super) struct MemoryText(Option<u64>);

impl Default for MemoryText {
    fn default() -> Self {
        Self(Some(0))
    }
}

impl<'de> Deserialize<'de> for MemoryText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "unknown" => Ok(Self(None)),
            text => parse_with_unit(text).map(Some).map(Self).map_err(D::Error::custom),
        }
    }
}

/// An address such as `"0x100000000"`.
#[derive(Clone, Copy)]
pub(super) struct Address(u64);

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.strip_prefix("0x");
        let address = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let expected =
            || format!("`{text}` is not an address: expected a form such as \"0x100000000\"");
        address.map(Self).ok_or_else(|| D::Error::custom(expected()))
    }
}

const fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CpuTable {
    pub(super) online: CpuSet,
    #[serde(default)]
    pub(super) offline: CpuSet,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NodeTable {
    pub(super) id: NodeId,
    proximity_domain: Option<ProximityDomain>,
    #[serde(default = "yes")]
    online: bool,
    #[serde(default)]
    pub(super) cpus: CpuSet,
    #[serde(default)]
    memory: MemoryText,
    free: Option<SizeText>,
    #[serde(default)]
    huge_pages: Vec<HugePageTable>,
    #[serde(default)]
    memory_side_caches: Vec<SideCacheTable>,
    #[serde(default)]
    cxl: bool,
}

impl NodeTable {
    pub(super) fn into_node(self) -> Node {
        let caches = self.memory_side_caches.into_iter();
        Node {
            id: self.id,
            proximity_domain: self.proximity_domain,
            online: self.online,
            cpus: self.cpus,
            memory_bytes: self.memory.0.unwrap_or(0),
            memory_unknown: self.memory.0.is_none(),
            free_bytes: self.free.map(|size| size.0),
            huge_pages: self.huge_pages.into_iter().map(HugePageTable::into_pool).collect(),
            memory_side_caches: caches.map(SideCacheTable::into_cache).collect(),
            cxl: self.cxl,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HugePageTable {
    page: SizeText,
    total: u64,
    free: u64,
}

impl HugePageTable {
    fn into_pool(self) -> HugePagePool {
        HugePagePool { page_bytes: self.page.0, total: self.total, free: self.free }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SideCacheTable {
    level: u8,
    size: SizeText,
    line_bytes: Option<u32>,
    ways: Option<u32>,
}

impl SideCacheTable {
    fn into_cache(self) -> MemorySideCache {
        MemorySideCache {
            level: self.level,
            size_bytes: self.size.0,
            line_bytes: self.line_bytes,
            ways: self.ways,
        }
    }
}

/// Caches that differ only in the cpus that share them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CacheTable {
    level: u8,
    kind: CacheKind,
    size: Option<SizeText>,
    line_bytes: Option<u32>,
    ways: Option<u32>,
    cpus: Vec<CpuSet>,
}

impl CacheTable {
    /// Returns the number of cpus in its caches.
    pub(super) fn cpu_count(&self) -> usize {
        self.cpus.iter().map(CpuSet::len).sum()
    }

    pub(super) fn into_caches(self) -> impl Iterator<Item = Cache> {
        self.cpus.into_iter().map(move |cpus| Cache {
            level: self.level,
            kind: self.kind,
            size_bytes: self.size.map(|size| size.0),
            line_bytes: self.line_bytes,
            ways: self.ways,
            cpus,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RangeTable {
    base: Address,
    length: SizeText,
    node: NodeId,
    #[serde(default)]
    hot_pluggable: bool,
    #[serde(default)]
    kind: MemoryKind,
}

impl RangeTable {
    pub(super) fn into_range(self) -> MemoryRange {
        MemoryRange {
            base: self.base.0,
            length_bytes: self.length.0,
            node: self.node,
            hot_pluggable: self.hot_pluggable,
            kind: self.kind,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AccessTable {
    initiator: NodeId,
    target: NodeId,
    #[serde(default)]
    class: AccessClass,
    read_latency_ps: Option<u64>,
    write_latency_ps: Option<u64>,
    read_bandwidth_mb_per_s: Option<u64>,
    write_bandwidth_mb_per_s: Option<u64>,
}

impl AccessTable {
    pub(super) fn into_access(self) -> AccessAttributes {
        AccessAttributes {
            initiator: self.initiator,
            target: self.target,
            class: self.class,
            read_latency_ps: self.read_latency_ps,
            write_latency_ps: self.write_latency_ps,
            read_bandwidth_mb_per_s: self.read_bandwidth_mb_per_s,
            write_bandwidth_mb_per_s: self.write_bandwidth_mb_per_s,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TierTable {
    id: u32,
    nodes: NodeSet,
}

impl TierTable {
    pub(super) fn into_tier(self) -> MemoryTier {
        MemoryTier { id: self.id, nodes: self.nodes }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AllowedTable {
    cpus: CpuSet,
    memory_nodes: NodeSet,
    #[serde(default)]
    isolated: CpuSet,
}

impl AllowedTable {
    pub(super) fn into_allowed(self) -> Allowed {
        let Self { cpus, memory_nodes, isolated } = self;
        Allowed { cpus, memory_nodes, isolated }
    }
}
