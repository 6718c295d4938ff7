//! The processor entries of a MADT, with one structure for each type; all others stay raw.

use core::fmt;

use crate::entry::{EntryHead, RawEntry};
use crate::record::Record;
use crate::writer::Writer;

flags! {
    /// Flags of local APICs, x2APICs and RINTCs (ACPI 6.5 table 5.22).
    pub struct LocalApicFlags(u32), none "disabled" {
        /// The processor can be used immediately.
        ENABLED = 1, "enabled";
        /// A disabled processor can be brought online later (revision 5).
        ONLINE_CAPABLE = 1 << 1, "online capable";
    }
}

flags! {
    /// Flags of GIC CPU interfaces (ACPI 6.5 table 5.37).
    pub struct GiccFlags(u32), none "disabled" {
        /// The processor can be used immediately.
        ENABLED = 1, "enabled";
        /// The performance interrupt is edge-triggered.
        PERFORMANCE_EDGE = 1 << 1, "performance interrupt edge-triggered";
        /// The VGIC maintenance interrupt is edge-triggered.
        VGIC_EDGE = 1 << 2, "VGIC interrupt edge-triggered";
        /// A disabled processor can be brought online later (ACPI 6.5).
        ONLINE_CAPABLE = 1 << 3, "online capable";
    }
}

record! {
    /// Processor Local APIC, type 0 (ACPI 6.5 §5.2.12.2).
    pub struct LocalApic == 8, head 2 => {
        /// ACPI processor UID.
        pub processor_uid: u8,
        /// Local APIC id.
        pub apic_id: u8,
        /// State of the processor.
        pub flags: LocalApicFlags,
    }
}

record! {
    /// Processor Local x2APIC, type 9 (ACPI 6.5 §5.2.12.12).
    pub struct LocalX2apic == 16, head 2 => {
        /// Reserved.
        pub reserved: u16,
        /// Local x2APIC id.
        pub x2apic_id: u32,
        /// State of the processor.
        pub flags: LocalApicFlags,
        /// ACPI processor UID.
        pub processor_uid: u32,
    }
}

record! {
    /// RISC-V INTC, type 24 (ACPI 6.6 §5.2.12.24, by an ECR to 6.5).
    pub struct Rintc == 36, head 2 => {
        /// Version of this structure.
        pub version: u8,
        /// Reserved.
        pub reserved: u8,
        /// State of the processor.
        pub flags: LocalApicFlags,
        /// Hart id.
        pub hart_id: u64,
        /// ACPI processor UID.
        pub processor_uid: u32,
        /// Id of the external interrupt controller.
        pub external_controller: u32,
        /// Address of the IMSIC.
        pub imsic_base: u64,
        /// Size of the IMSIC.
        pub imsic_size_bytes: u32,
    }
}

record! {
    /// LoongArch CPU core interrupt controller, type 17 (ACPI 6.5 §5.2.12.20); the other
    /// controllers of LoongArch are types 18 to 23.
    pub struct CorePic == 15, head 2 => {
        /// Version of this structure.
        pub version: u8,
        /// ACPI processor UID.
        pub processor_uid: u32,
        /// Physical id of the core, as used in local APIC entries of the SRAT.
        pub core_id: u32,
        /// State of the processor.
        pub flags: LocalApicFlags,
    }
}

headed! {
    /// GIC CPU Interface, type 11 (ACPI 6.5 §5.2.12.14), of 40, 76, 80 or 82 bytes depending on the
    /// ACPI version.
    pub struct Gicc<'a>, GiccHead == 40, head 2 => {
        /// Reserved.
        pub reserved: u16,
        /// GIC CPU interface number.
        pub interface_number: u32,
        /// ACPI processor UID.
        pub processor_uid: u32,
        /// State of the processor.
        pub flags: GiccFlags,
        /// Version of the parking protocol, 0 or 1.
        pub parking_version: u32,
        /// Global interrupt number of the performance monitor.
        pub performance_interrupt: u32,
        /// Address of the parking mailbox.
        pub parked_address: u64,
        /// Address of the CPU interface.
        pub base: u64,
    } then {
        /// Fields added by later versions, starting with the GICV address.
        pub extension: &'a [u8],
    }
}

impl<'a> Gicc<'a> {
    /// Sizes of this entry in bytes from ACPI 5.0 to 6.5.
    pub(crate) const LENGTHS: [usize; 4] = [40, 76, 80, 82];
    /// Offset of the MPIDR in the extension: it is at byte 68 of the entry.
    const MPIDR: usize = 28;

    /// Returns the processor's MPIDR, available since ACPI 5.1.
    pub fn mpidr(&self) -> Option<u64> {
        u64::read(&mut self.extension.get(Self::MPIDR..)?)
    }

    fn read(mut bytes: &'a [u8]) -> Option<Self> {
        let fixed = GiccHead::read(&mut bytes)?;
        Some(Self::of(fixed, bytes))
    }

    fn write(&self, writer: &mut Writer<'_>) {
        EntryHead::Byte.write(writer, 11, self.extension.len().saturating_add(GiccHead::SIZE));
        self.fixed().write(writer);
        writer.bytes(self.extension);
    }
}

/// An entry of a MADT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Entry<'a> {
    /// Type 0.
    LocalApic(LocalApic),
    /// Type 9.
    LocalX2apic(LocalX2apic),
    /// Type 11.
    Gicc(Gicc<'a>),
    /// Type 17.
    CorePic(CorePic),
    /// Type 24.
    Rintc(Rintc),
    /// Not a processor, or an entry too short for its type.
    Raw(RawEntry<'a>),
}

/// Returns the size in bytes of an entry of this type, head included; `None` for types of varying
/// or unknown length.
pub(crate) fn expected_size(kind: u16) -> Option<usize> {
    Some(match kind {
        0 | 3 => 8,
        1 | 5 | 10 => 12,
        2 => 10,
        4 => 6,
        6 | 8 | 9 | 14 | 16 | 25 => 16,
        12 | 13 => 24,
        15 => 20,
        17 | 23 => 15,
        18 => 23,
        19 => 21,
        20 => 13,
        21 => 19,
        22 => 17,
        24 | 26 | 27 => 36,
        _ => return None,
    })
}

entries! {
    Byte {
        0 => LocalApic,
        9 => LocalX2apic,
        17 => CorePic,
        24 => Rintc,
        varying 11 => Gicc(Gicc),
    }
}

impl fmt::Display for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LocalApic(cpu) => {
                write!(f, "local APIC {} of UID {}: {}", cpu.apic_id, cpu.processor_uid, cpu.flags)
            }
            Self::LocalX2apic(cpu) => {
                let (id, uid) = (cpu.x2apic_id, cpu.processor_uid);
                write!(f, "local x2APIC {id} of UID {uid}: {}", cpu.flags)
            }
            Self::Gicc(cpu) => {
                let (number, uid) = (cpu.interface_number, cpu.processor_uid);
                write!(f, "GIC CPU interface {number} of UID {uid}")?;
                if let Some(mpidr) = cpu.mpidr() {
                    write!(f, ", MPIDR {mpidr:#x}")?;
                }
                write!(f, ": {}", cpu.flags)
            }
            Self::CorePic(cpu) => {
                let (id, uid) = (cpu.core_id, cpu.processor_uid);
                write!(f, "core PIC of core {id}, UID {uid}: {}", cpu.flags)
            }
            Self::Rintc(cpu) => {
                let (hart, uid) = (cpu.hart_id, cpu.processor_uid);
                write!(f, "RINTC of hart {hart}, UID {uid}: {}", cpu.flags)
            }
            Self::Raw(raw) => raw.fmt(f),
        }
    }
}
