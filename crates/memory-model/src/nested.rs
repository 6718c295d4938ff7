//! The second dimension of a page walk: the host's page tables behind a guest's memory.
//!
//! Under nested paging every guest-physical address that a walk meets is translated by the host's
//! tables: that of each table entry, and that of the data in the end. From 4 KiB pages to 4 KiB pages
//! these are 4 × (4 + 1) + 4 = 24 references (Bhargava, Serebrin, Spadini, Manne, "Accelerating
//! Two-Dimensional Page Walks for Virtualized Systems", ASPLOS 2008). As there, a nested TLB
//! has the translations of the guest's tables, and entries of the host's upper levels are
//! cached with the guest's.

use core::ops::Range;

use crate::cache::Cache;
use crate::page_tables::{LEVELS, number};

/// Entries of the nested TLB: an assumption.
const ENTRIES: u32 = 16;
/// Distinguishes a host's upper entries from a guest's in their common cache.
pub(crate) const HOST_KEY: u64 = 1 << 60;

/// Translation of guest-physical addresses by a vCPU.
#[derive(Debug)]
pub(crate) struct Nested {
    /// Size of the host's pages: 0 for 4 KiB, 1 for 2 MiB, 2 for 1 GiB.
    pub size: usize,
    tables: Cache,
}

impl Nested {
    pub(crate) fn new(size: usize) -> Self {
        Self { size, tables: Cache::of_lines(u64::from(ENTRIES), ENTRIES, 0) }
    }

    /// Looks up the page of a guest's table entry in the nested TLB, and inserts it; returns
    /// whether it was present.
    pub(crate) fn has_table(&self, address: u64) -> bool {
        self.tables.access(number(address, self.end() - 1))
    }

    /// Returns the level after the host's last one.
    pub(crate) fn end(&self) -> usize {
        LEVELS - self.size
    }

    pub(crate) fn clear(&self) {
        self.tables.clear();
    }
}

/// Returns the host's levels below `end` that a walk reads, given the lowest cached level.
pub(crate) fn behind(known: Option<usize>, end: usize) -> Range<usize> {
    known.map_or(0, |level| level + 1)..end
}
