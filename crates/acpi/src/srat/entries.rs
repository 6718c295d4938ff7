//! The entries of a SRAT, with one structure for each type.

use core::fmt;

use super::device::{DeviceAffinity, DeviceFlags};
use crate::entry::{EntryHead, RawEntry};
use crate::record::Record;
use crate::size::Size;
use crate::writer::Writer;

flags! {
    /// Flags of processor entries (ACPI 6.5 tables 5.54, 5.58, 5.60).
    pub struct AffinityFlags(u32), none "disabled" {
        /// The entry is enabled.
        ENABLED = 1, "enabled";
    }
}

flags! {
    /// Flags of memory entries (ACPI 6.5 table 5.56).
    pub struct MemoryFlags(u32), none "disabled" {
        /// The entry is enabled.
        ENABLED = 1, "enabled";
        /// The memory can be added or removed while the system runs.
        HOT_PLUGGABLE = 1 << 1, "hot-pluggable";
        /// The memory keeps its content without power.
        NON_VOLATILE = 1 << 2, "non-volatile";
        /// The memory is meant for a specific purpose, not for general use (ACPI 6.6).
        SPECIFIC_PURPOSE = 1 << 3, "specific-purpose";
    }
}

record! {
    /// Processor Local APIC/SAPIC Affinity, type 0 (ACPI 6.5 §5.2.16.1).
    pub struct LocalApicAffinity == 16, head 2 => {
        /// Bits 7:0 of the proximity domain.
        pub domain_low: u8,
        /// Local APIC id.
        pub apic_id: u8,
        /// State of the entry.
        pub flags: AffinityFlags,
        /// Local SAPIC EID.
        pub sapic_eid: u8,
        /// Bits 31:8 of the proximity domain; reserved in a revision 1 table.
        pub domain_high: [u8; 3],
        /// Clock domain.
        pub clock_domain: u32,
    }
}

impl LocalApicAffinity {
    /// Returns all 32 bits of the proximity domain.
    pub fn domain(&self) -> u32 {
        let [b, c, d] = self.domain_high;
        u32::from_le_bytes([self.domain_low, b, c, d])
    }

    /// Creates the entry of an enabled processor.
    pub fn new(apic_id: u8, domain: u32) -> Self {
        let [domain_low, b, c, d] = domain.to_le_bytes();
        let domain_high = [b, c, d];
        let flags = AffinityFlags::ENABLED;
        Self { domain_low, apic_id, flags, domain_high, ..Self::default() }
    }
}

record! {
    /// Memory Affinity, type 1 (ACPI 6.5 §5.2.16.2).
    pub struct MemoryAffinity == 40, head 2 => {
        /// Proximity domain.
        pub domain: u32,
        /// Reserved.
        pub reserved1: u16,
        /// First address.
        pub base: u64,
        /// Length of the range.
        pub length_bytes: u64,
        /// Reserved.
        pub reserved2: u32,
        /// State of the entry, and the kind of memory.
        pub flags: MemoryFlags,
        /// Reserved.
        pub reserved3: u64,
    }
}

record! {
    /// Processor Local x2APIC Affinity, type 2 (ACPI 6.5 §5.2.16.3).
    pub struct LocalX2apicAffinity == 24, head 2 => {
        /// Reserved.
        pub reserved1: u16,
        /// Proximity domain.
        pub domain: u32,
        /// Local x2APIC id.
        pub x2apic_id: u32,
        /// State of the entry.
        pub flags: AffinityFlags,
        /// Clock domain.
        pub clock_domain: u32,
        /// Reserved.
        pub reserved2: u32,
    }
}

record! {
    /// GICC Affinity, type 3 (ACPI 6.5 §5.2.16.4).
    pub struct GiccAffinity == 18, head 2 => {
        /// Proximity domain.
        pub domain: u32,
        /// ACPI processor UID, as in the GICC of the MADT.
        pub processor_uid: u32,
        /// State of the entry.
        pub flags: AffinityFlags,
        /// Clock domain.
        pub clock_domain: u32,
    }
}

record! {
    /// GIC Interrupt Translation Service Affinity, type 4 (ACPI 6.5 §5.2.16.5).
    pub struct GicItsAffinity == 12, head 2 => {
        /// Proximity domain.
        pub domain: u32,
        /// Reserved.
        pub reserved: u16,
        /// ITS id, as in the MADT.
        pub its_id: u32,
    }
}

record! {
    /// RINTC Affinity, type 7 (ACPI 6.6 §5.2.16.8, by an ECR to 6.5).
    pub struct RintcAffinity == 20, head 2 => {
        /// Reserved.
        pub reserved: u16,
        /// Proximity domain.
        pub domain: u32,
        /// ACPI processor UID, as in the RINTC of the MADT.
        pub processor_uid: u32,
        /// State of the entry.
        pub flags: AffinityFlags,
        /// Clock domain.
        pub clock_domain: u32,
    }
}

/// An entry of a SRAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Entry<'a> {
    /// Type 0.
    LocalApic(LocalApicAffinity),
    /// Type 1.
    Memory(MemoryAffinity),
    /// Type 2.
    LocalX2apic(LocalX2apicAffinity),
    /// Type 3.
    Gicc(GiccAffinity),
    /// Type 4.
    GicIts(GicItsAffinity),
    /// Type 5.
    GenericInitiator(DeviceAffinity),
    /// Type 6.
    GenericPort(DeviceAffinity),
    /// Type 7.
    Rintc(RintcAffinity),
    /// An unknown type, or an entry too short for its type.
    Raw(RawEntry<'a>),
}

impl Entry<'_> {
    /// Returns the 32-bit domain of an enabled entry; an ITS has no flags and is always enabled.
    pub fn enabled_domain(&self) -> Option<u32> {
        let (domain, enabled) = match self {
            Self::LocalApic(cpu) => (cpu.domain(), cpu.flags.contains(AffinityFlags::ENABLED)),
            Self::Memory(memory) => (memory.domain, memory.flags.contains(MemoryFlags::ENABLED)),
            Self::LocalX2apic(cpu) => (cpu.domain, cpu.flags.contains(AffinityFlags::ENABLED)),
            Self::Gicc(cpu) => (cpu.domain, cpu.flags.contains(AffinityFlags::ENABLED)),
            Self::GicIts(its) => (its.domain, true),
            Self::GenericInitiator(device) | Self::GenericPort(device) => {
                (device.domain, device.flags.contains(DeviceFlags::ENABLED))
            }
            Self::Rintc(cpu) => (cpu.domain, cpu.flags.contains(AffinityFlags::ENABLED)),
            Self::Raw(_) => return None,
        };
        enabled.then_some(domain)
    }
}

/// Returns the size in bytes of an entry of this type, head included.
pub(crate) fn expected_size(kind: u16) -> Option<usize> {
    Some(match kind {
        0 => 16,
        1 => 40,
        2 => 24,
        3 => 18,
        4 => 12,
        5 | 6 => 32,
        7 => 20,
        _ => return None,
    })
}

entries! {
    Byte {
        0 => LocalApic,
        1 => Memory,
        2 => LocalX2apic,
        3 => Gicc,
        4 => GicIts,
        5 => GenericInitiator,
        6 => GenericPort,
        7 => Rintc,
    }
}

impl fmt::Display for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LocalApic(cpu) => {
                let (id, domain) = (cpu.apic_id, cpu.domain());
                write!(f, "local APIC {id}: domain {domain}, {}", cpu.flags)
            }
            Self::Memory(memory) => memory.fmt(f),
            Self::LocalX2apic(cpu) => {
                write!(f, "local x2APIC {}: domain {}, {}", cpu.x2apic_id, cpu.domain, cpu.flags)
            }
            Self::Gicc(cpu) => {
                write!(f, "GICC of UID {}: domain {}, {}", cpu.processor_uid, cpu.domain, cpu.flags)
            }
            Self::GicIts(its) => write!(f, "GIC ITS {}: domain {}", its.its_id, its.domain),
            Self::GenericInitiator(device) => write!(f, "generic initiator {device}"),
            Self::GenericPort(device) => write!(f, "generic port {device}"),
            Self::Rintc(cpu) => {
                let (uid, domain) = (cpu.processor_uid, cpu.domain);
                write!(f, "RINTC of UID {uid}: domain {domain}, {}", cpu.flags)
            }
            Self::Raw(raw) => raw.fmt(f),
        }
    }
}

impl fmt::Display for MemoryAffinity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "memory {:#014x} + {:#x} ({}): domain {}, {}",
            self.base,
            self.length_bytes,
            Size(self.length_bytes),
            self.domain,
            self.flags,
        )
    }
}
