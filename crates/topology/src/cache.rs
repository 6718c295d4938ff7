//! Caches.

use crate::id_set::CpuSet;

/// The content of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum CacheKind {
    /// A data cache.
    Data,
    /// An instruction cache.
    Instruction,
    /// A unified cache, for data and instructions.
    Unified,
}

/// One cache, as the system reports it. A program may get less than the reported size: measure
/// before relying on it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cache {
    /// The level; 1 is nearest to the core.
    pub level: u8,
    /// The content of the cache.
    pub kind: CacheKind,
    /// Capacity in bytes, if reported.
    pub size_bytes: Option<u64>,
    /// Line size in bytes, if reported.
    pub line_bytes: Option<u32>,
    /// Associativity, if reported; 0 never occurs (fully associative is `None`).
    pub ways: Option<u32>,
    /// The cpus that share the cache.
    pub cpus: CpuSet,
}
