//! Multiple APIC Description Table (ACPI 6.5 §5.2.12): the processors of the machine.

mod entries;

pub use entries::{CorePic, Entry, Gicc, GiccFlags, LocalApic, LocalApicFlags, LocalX2apic, Rintc};

pub(crate) use entries::expected_size;

use crate::entry::EntryHead;
use crate::header::Signature;
use crate::srat::ProcessorId;
use crate::table::{Format, Located, Table};

/// A Multiple APIC Description Table; its signature is `APIC`.
pub type Madt<'a> = Table<'a, Layout>;

/// The MADT's layout, for [`Builder`](crate::Builder).
#[derive(Clone, Copy, Debug)]
pub struct Layout;

flags! {
    /// Flags of the table (ACPI 6.5 table 5.20).
    pub struct MadtFlags(u32), none "no flags" {
        /// The system also has two 8259 interrupt controllers.
        PCAT_COMPAT = 1, "PC-AT compatible";
    }
}

record! {
    /// Fields between header and entries (ACPI 6.5 §5.2.12, table 5.19).
    pub struct Fixed == 8, head 0 => {
        /// Physical address of the local APICs.
        pub local_apic_address: u32,
        /// Flags of the MADT.
        pub flags: MadtFlags,
    }
}

impl Format for Layout {
    const SIGNATURE: Signature = Signature::MADT;
    const HEAD: EntryHead = EntryHead::Byte;
    const REVISIONS: (u8, u8) = (1, 7);
    type Fixed = Fixed;
    type Entry<'a> = Entry<'a>;
}

/// The hardware id of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HardwareId {
    /// Local APIC or x2APIC id; the physical id of a core on LoongArch.
    Apic(u32),
    /// Arm MPIDR; `None` in the entries of ACPI 5.0.
    Mpidr(Option<u64>),
    /// RISC-V hart id.
    Hart(u64),
}

/// A processor, from an entry of any type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor {
    /// Id of the processor, as in the SRAT.
    pub id: ProcessorId,
    /// Id of the processor in hardware.
    pub hardware: HardwareId,
    /// ACPI processor UID.
    pub uid: u32,
    /// True if the processor can be used immediately.
    pub enabled: bool,
    /// True if the processor can be brought online later (ACPI 6.3; earlier revisions reserve the
    /// bit).
    pub online_capable: bool,
    /// Offset of the entry in the table.
    pub offset: usize,
}

impl<'a> Table<'a, Layout> {
    /// Returns all processors, including disabled ones.
    pub fn processors(&self) -> impl Iterator<Item = Processor> + use<'a> {
        self.entries().filter_map(|located| processor(&located))
    }
}

pub(crate) fn processor(located: &Located<Entry<'_>>) -> Option<Processor> {
    let apic = |id: u32, uid: u32, flags: LocalApicFlags| Processor {
        id: ProcessorId::Apic(id),
        hardware: HardwareId::Apic(id),
        uid,
        enabled: flags.contains(LocalApicFlags::ENABLED),
        online_capable: flags.contains(LocalApicFlags::ONLINE_CAPABLE),
        offset: located.offset,
    };
    Some(match &located.entry {
        Entry::LocalApic(cpu) => apic(cpu.apic_id.into(), cpu.processor_uid.into(), cpu.flags),
        Entry::LocalX2apic(cpu) => apic(cpu.x2apic_id, cpu.processor_uid, cpu.flags),
        Entry::CorePic(cpu) => apic(cpu.core_id, cpu.processor_uid, cpu.flags),
        Entry::Gicc(cpu) => Processor {
            id: ProcessorId::Gicc(cpu.processor_uid),
            hardware: HardwareId::Mpidr(cpu.mpidr()),
            uid: cpu.processor_uid,
            enabled: cpu.flags.contains(GiccFlags::ENABLED),
            online_capable: cpu.flags.contains(GiccFlags::ONLINE_CAPABLE),
            offset: located.offset,
        },
        Entry::Rintc(cpu) => Processor {
            id: ProcessorId::Rintc(cpu.processor_uid),
            hardware: HardwareId::Hart(cpu.hart_id),
            uid: cpu.processor_uid,
            enabled: cpu.flags.contains(LocalApicFlags::ENABLED),
            online_capable: cpu.flags.contains(LocalApicFlags::ONLINE_CAPABLE),
            offset: located.offset,
        },
        Entry::Raw(_) => return None,
    })
}
