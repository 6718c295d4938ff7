//! The translation of addresses by a core.

use alloc::vec;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// Bits of an address within a page: 4 KiB, 2 MiB, 1 GiB.
pub(crate) const PAGE_BITS: [u32; 3] = [12, 21, 30];

/// Returns the index in [`PAGE_BITS`] of a page size.
pub(crate) fn page_size(bytes: u64) -> Option<usize> {
    PAGE_BITS.iter().position(|&bits| 1 << bits == bytes)
}

/// An array of translations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlbPart {
    /// Level, 1 for the nearest; a level has one part per array.
    pub level: u8,
    /// Sizes of the pages that it holds: 4096, 2097152, 1073741824. A level without pages of a size
    /// holds them in pieces of its largest smaller size.
    pub page_bytes: Vec<u64>,
    /// Total number of translations, a whole number of sets.
    pub entries: u32,
    /// Entries per set.
    pub ways: u32,
    /// Cost of a hit in addition to the access, in ns.
    #[serde(default)]
    pub latency_ns: f64,
}

/// The translation of data addresses by a core.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tlb {
    /// Arrays of translations, each for some page sizes.
    pub parts: Vec<TlbPart>,
    /// Number of cached entries of the page tables' upper levels, from which a walk continues.
    #[serde(default)]
    pub upper_entries: u32,
    /// Maximum number of concurrent walks, if misses overlap.
    pub walkers: u32,
    /// Time of a walk in addition to its accesses to page table entries, in ns, 0 to 1000000000.
    #[serde(default)]
    pub walk_ns: f64,
    /// Size of the host's pages behind the guest's memory: 4096, 2097152 or 1073741824. If given,
    /// walks include the host's page tables, and a TLB holds no larger page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_page_bytes: Option<u64>,
    /// Position in `nodes` of the node with all page tables; by default, the node of the walking
    /// vCPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tables_node: Option<usize>,
}

impl Tlb {
    /// Returns the sizes and walkers of AMD's Zen 3 (Software Optimization Guide for AMD Family 19h
    /// Processors, publication 56665); 64 upper entries and 2 ns for a hit in the second level are
    /// assumptions.
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
            host_page_bytes: None,
            tables_node: None,
        }
    }
}

impl Tlb {
    /// Returns the given or the typical TLBs for a guest on a host with pages of 4 KiB.
    pub(super) fn nested(of: Option<Self>) -> Self {
        let host_page_bytes = Some(1 << PAGE_BITS[0]);
        Self { host_page_bytes, ..of.unwrap_or_else(Self::typical) }
    }
}
