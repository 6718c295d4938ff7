//! System Resource Affinity Table (ACPI 6.5 §5.2.16): the domains of processors, memory ranges and
//! devices.

mod device;
mod entries;

pub use device::{DeviceAffinity, DeviceFlags, DeviceHandle};
pub(crate) use entries::expected_size;
pub use entries::{
    AffinityFlags, Entry, GicItsAffinity, GiccAffinity, LocalApicAffinity, LocalX2apicAffinity,
    MemoryAffinity, MemoryFlags, RintcAffinity,
};

use crate::entry::EntryHead;
use crate::header::Signature;
pub use crate::processor::ProcessorId;
use crate::table::{Format, Located, Table};

/// A System Resource Affinity Table.
pub type Srat<'a> = Table<'a, Layout>;

/// The SRAT's layout, for [`Builder`](crate::Builder).
#[derive(Clone, Copy, Debug)]
pub struct Layout;

record! {
    /// Fields between header and entries (ACPI 6.5 §5.2.16, table 5.52).
    pub struct Fixed == 12, head 0 => {
        /// Reserved to be 1 for backward compatibility.
        pub table_revision: u32,
        /// Reserved.
        pub reserved: u64,
    }
}

impl Fixed {
    /// Returns the values that the specification requires.
    pub const fn new() -> Self {
        Self { table_revision: 1, reserved: 0 }
    }
}

impl Format for Layout {
    const SIGNATURE: Signature = Signature::SRAT;
    const HEAD: EntryHead = EntryHead::Byte;
    const REVISIONS: (u8, u8) = (1, 3);
    type Fixed = Fixed;
    type Entry<'a> = Entry<'a>;
}

/// A processor and its domain, from an entry of any type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor {
    /// Id of the processor, as in the MADT.
    pub id: ProcessorId,
    /// Proximity domain, which has 8 bits in a revision 1 table.
    pub domain: u32,
    /// True if the entry is enabled.
    pub enabled: bool,
    /// Clock domain.
    pub clock_domain: u32,
    /// Offset of the entry in the table.
    pub offset: usize,
}

/// A range of memory and its domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// First address.
    pub base: u64,
    /// Length in bytes.
    pub length_bytes: u64,
    /// Proximity domain, which has 8 bits in a revision 1 table.
    pub domain: u32,
    /// Enabled, hot-pluggable, non-volatile, specific-purpose.
    pub flags: MemoryFlags,
    /// Offset of the entry in the table.
    pub offset: usize,
}

impl Memory {
    /// Returns the last address, or `None` for an empty range and one that extends past 2^64.
    pub fn last(&self) -> Option<u64> {
        self.base.checked_add(self.length_bytes.checked_sub(1)?)
    }

    /// Returns true if the entry is enabled.
    pub fn is_enabled(&self) -> bool {
        self.flags.contains(MemoryFlags::ENABLED)
    }
}

impl<'a> Table<'a, Layout> {
    /// Returns all processors, including disabled ones.
    pub fn processors(&self) -> impl Iterator<Item = Processor> + use<'a> {
        let table = *self;
        self.entries().filter_map(move |located| table.processor(&located))
    }

    /// Returns all memory ranges, including disabled ones.
    pub fn memory(&self) -> impl Iterator<Item = Memory> + use<'a> {
        let table = *self;
        self.entries().filter_map(move |Located { offset, entry }| match entry {
            Entry::Memory(memory) => Some(Memory {
                base: memory.base,
                length_bytes: memory.length_bytes,
                domain: table.domain(memory.domain),
                flags: memory.flags,
                offset,
            }),
            _ => None,
        })
    }

    /// Returns the domain of each enabled entry, with the offset of the entry; a domain occurs once
    /// per entry.
    pub fn domains(&self) -> impl Iterator<Item = Located<u32>> + use<'a> {
        let table = *self;
        self.entries().filter_map(move |Located { offset, entry }| {
            let domain = entry.enabled_domain()?;
            Some(Located { offset, entry: table.domain(domain) })
        })
    }

    /// Interprets a domain by the table's revision: in revision 1, only its low 8 bits count.
    pub fn domain(&self, raw: u32) -> u32 {
        if self.header().revision < 2 { raw & 0xff } else { raw }
    }

    fn processor(&self, located: &Located<Entry<'_>>) -> Option<Processor> {
        let (id, domain, flags, clock_domain) = match located.entry {
            Entry::LocalApic(cpu) => {
                (ProcessorId::Apic(cpu.apic_id.into()), cpu.domain(), cpu.flags, cpu.clock_domain)
            }
            Entry::LocalX2apic(cpu) => {
                (ProcessorId::Apic(cpu.x2apic_id), cpu.domain, cpu.flags, cpu.clock_domain)
            }
            Entry::Gicc(cpu) => {
                (ProcessorId::Gicc(cpu.processor_uid), cpu.domain, cpu.flags, cpu.clock_domain)
            }
            Entry::Rintc(cpu) => {
                (ProcessorId::Rintc(cpu.processor_uid), cpu.domain, cpu.flags, cpu.clock_domain)
            }
            _ => return None,
        };
        Some(Processor {
            id,
            domain: self.domain(domain),
            enabled: flags.contains(AffinityFlags::ENABLED),
            clock_domain,
            offset: located.offset,
        })
    }
}
