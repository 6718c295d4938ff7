//! Heterogeneous Memory Attribute Table (ACPI 6.5 §5.2.28): latency and bandwidth of memory for
//! each initiator.

mod cache;
mod entries;
mod locality;
mod reading;

pub use cache::{Associativity, Cache, CacheAttributes, WritePolicy};
pub use entries::{Entry, ProximityAttributes, ProximityFlags};
pub use locality::{Locality, LocalityFlags};
pub use reading::{Access, CellValue, DataType};

pub(crate) use entries::expected_size;

use crate::entry::EntryHead;
use crate::header::Signature;
use crate::table::{Format, Located, Table};

/// A Heterogeneous Memory Attribute Table.
pub type Hmat<'a> = Table<'a, Layout>;

/// The HMAT's layout, for [`Builder`](crate::Builder).
#[derive(Clone, Copy, Debug)]
pub struct Layout;

record! {
    /// Fields between header and entries (ACPI 6.5 §5.2.28, table 5.142).
    pub struct Fixed == 4, head 0 => {
        /// Reserved.
        pub reserved: u32,
    }
}

impl Format for Layout {
    const SIGNATURE: Signature = Signature::HMAT;
    const HEAD: EntryHead = EntryHead::Double;
    const REVISIONS: (u8, u8) = (1, 2);
    type Fixed = Fixed;
    type Entry<'a> = Entry<'a>;
}

impl<'a> Table<'a, Layout> {
    /// Returns all matrices of latencies or bandwidths.
    pub fn localities(&self) -> impl Iterator<Item = Located<Locality<'a>>> + use<'a> {
        self.entries().filter_map(|Located { offset, entry }| match entry {
            Entry::Locality(entry) => Some(Located { offset, entry }),
            _ => None,
        })
    }

    /// Returns all memory-side caches.
    pub fn caches(&self) -> impl Iterator<Item = Located<Cache<'a>>> + use<'a> {
        self.entries().filter_map(|Located { offset, entry }| match entry {
            Entry::Cache(entry) => Some(Located { offset, entry }),
            _ => None,
        })
    }

    /// Returns all links between a memory domain and its nearest initiator.
    pub fn attributes(&self) -> impl Iterator<Item = Located<ProximityAttributes>> + use<'a> {
        self.entries().filter_map(|Located { offset, entry }| match entry {
            Entry::Proximity(entry) => Some(Located { offset, entry }),
            _ => None,
        })
    }

    /// Returns the latency in picoseconds from an initiator's domain to the memory of a target's,
    /// without caches; `None` if no matrix has it.
    pub fn latency_ps(&self, initiator: u32, target: u32, access: Access) -> Option<CellValue> {
        self.memory_reading(initiator, target, [access.latency(), DataType::AccessLatency])
    }

    /// Returns the bandwidth in MB/s between an initiator's domain and the memory of a target's,
    /// without caches; `None` if no matrix has it.
    pub fn bandwidth_mb_per_s(
        &self,
        initiator: u32,
        target: u32,
        access: Access,
    ) -> Option<CellValue> {
        self.memory_reading(initiator, target, [access.bandwidth(), DataType::AccessBandwidth])
    }

    /// Converts a matrix cell to picoseconds or MB/s according to the table's revision.
    pub fn reading(&self, locality: &Locality<'_>, value: u16) -> CellValue {
        CellValue::new(self.header().revision, locality.data_type, locality.base_unit, value)
    }

    /// Returns the first reading that is a value or "unreachable", from matrices of plain memory in
    /// the order of `data_types`; otherwise the reading of the first matrix that has the cell.
    fn memory_reading(
        &self,
        initiator: u32,
        target: u32,
        data_types: [DataType; 2],
    ) -> Option<CellValue> {
        let mut silent = None;
        for data_type in data_types {
            for Located { entry, .. } in self.localities() {
                if entry.data_type != u8::from(data_type) || !entry.flags.is_memory() {
                    continue;
                }
                let Some(value) = entry.value(initiator, target) else { continue };
                match self.reading(&entry, value) {
                    reading @ (CellValue::Unknown | CellValue::Meaningless) => {
                        silent.get_or_insert(reading);
                    }
                    reading => return Some(reading),
                }
            }
        }
        silent
    }
}
