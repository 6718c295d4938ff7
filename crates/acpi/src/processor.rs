//! Ids of processors in the tables.

use core::fmt;

/// A processor id that is the same in SRAT and MADT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProcessorId {
    /// Local APIC or x2APIC id; the physical id of a core on LoongArch.
    Apic(u32),
    /// ACPI processor UID, on Arm.
    Gicc(u32),
    /// ACPI processor UID, on RISC-V.
    Rintc(u32),
}

impl ProcessorId {
    /// Returns one integer for each processor, to sort and search by.
    pub(crate) fn key(self) -> u64 {
        let (kind, id): (u64, u32) = match self {
            Self::Apic(id) => (0, id),
            Self::Gicc(uid) => (1, uid),
            Self::Rintc(uid) => (2, uid),
        };
        kind << 32 | u64::from(id)
    }

    pub(crate) fn from_key(key: u64) -> Self {
        let [a, b, c, d, kind, ..] = key.to_le_bytes();
        let id = u32::from_le_bytes([a, b, c, d]);
        match kind {
            0 => Self::Apic(id),
            1 => Self::Gicc(id),
            _ => Self::Rintc(id),
        }
    }
}

impl fmt::Display for ProcessorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Apic(id) => write!(f, "APIC id {id}"),
            Self::Gicc(uid) => write!(f, "GICC processor UID {uid}"),
            Self::Rintc(uid) => write!(f, "RINTC processor UID {uid}"),
        }
    }
}
