//! How a core translates addresses.

use alloc::vec;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// Bits of an address within a page: 4 KiB, 2 MiB, 1 GiB.
pub(crate) const PAGE_BITS: [u32; 3] = [12, 21, 30];

/// The place in [`PAGE_BITS`] of a size of page.
pub(crate) fn page_size(bytes: u64) -> Option<usize> {
    PAGE_BITS.iter().position(|&bits| 1 << bits == bytes)
}

/// One array of translations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlbPart {
    /// 1 is the nearest; a level has a part for each of its arrays.
    pub level: u8,
    /// Sizes of the pages that it holds: 4096, 2097152, 1073741824. A level that holds no pages of
    /// a size holds pieces of them as large as it can.
    pub page_bytes: Vec<u64>,
    /// Translations in all, a whole number of sets.
    pub entries: u32,
    /// Entries of a set.
    pub ways: u32,
    /// What a hit costs beyond the access.
    #[serde(default)]
    pub latency_ns: f64,
}

/// How a core translates addresses of data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tlb {
    /// Its arrays.
    pub parts: Vec<TlbPart>,
    /// Entries of the upper levels of page tables that it keeps, from which a walk goes on.
    #[serde(default)]
    pub upper_entries: u32,
    /// Walks at a time, where misses overlap.
    pub walkers: u32,
    /// Time of a walk beyond its accesses to entries of page tables, in ns, 0 to 1000000000.
    #[serde(default)]
    pub walk_ns: f64,
    /// Time between the starts of two walks, in ns, 0 to 1000000000: walks share the core's means to walk,
    /// however many are under way.
    #[serde(default)]
    pub walk_each_ns: f64,
    /// The host's pages behind the guest's memory: 4096, 2097152 or 1073741824. Its page tables are walked
    /// as well then, and a TLB holds no page larger than these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_page_bytes: Option<u64>,
    /// Position in `nodes` of the node that page tables lie on; without it, that of who walks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tables_node: Option<usize>,
}

impl Tlb {
    /// Sizes and walkers of AMD's Zen 3 (Software Optimization Guide for AMD Family 19h
    /// Processors, publication 56665); 64 upper entries and 2 ns for a hit in the second level
    /// are assumptions.
    pub(super) fn typical() -> Self {
        let part = |level, entries, ways, latency_ns, page_bytes: &[u64]| TlbPart {
            level,
            page_bytes: page_bytes.to_vec(),
            entries,
            ways,
            latency_ns,
        };
        let first = part(1, 64, 64, 0.0, &[1 << 12, 1 << 21, 1 << 30]);
        let parts = vec![first, part(2, 2048, 8, 2.0, &[1 << 12, 1 << 21])];
        Self {
            parts,
            upper_entries: 64,
            walkers: 6,
            walk_ns: 0.0,
            walk_each_ns: 0.0,
            host_page_bytes: None,
            tables_node: None,
        }
    }
}

impl Tlb {
    /// The same, or a typical one, in a guest on the host's pages of 4 KiB.
    pub(super) fn nested(of: Option<Self>) -> Self {
        let host_page_bytes = Some(1 << PAGE_BITS[0]);
        Self { host_page_bytes, ..of.unwrap_or_else(Self::typical) }
    }
}
