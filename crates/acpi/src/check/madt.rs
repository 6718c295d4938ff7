//! Checks of a single MADT.

use super::layout::{Reporter, check_layout, check_processor_count};
use super::rules::{Rule, field};
use super::scratch::{Slot, repeats, sorted};
use crate::entry::RawEntry;
use crate::finding::Finding;
use crate::header::{Header, Signature};
use crate::madt::{Entry, Gicc, GiccFlags, Madt, MadtFlags, Processor, expected_size, processor};
use crate::problem::Problem;
use crate::srat::ProcessorId;
use crate::table::Located;

/// Constraints on fields from ACPI 6.5 §5.2.12.2 to §5.2.12.25 and fwts. The online capable flag is
/// accepted in all revisions, because firmware sets it before revision 5, which defines it.
const RULES: &[Rule] = &[
    Rule::flags(0, 4, 4, 0b11),
    Rule::reserved(1, 3, 1),
    Rule::non_zero(1, 4, 4, "I/O APIC Address"),
    Rule::at_most(2, 2, 1, 0, "Bus"),
    Rule::flags(2, 8, 2, 0b1111),
    Rule::flags(3, 2, 2, 0b1111),
    Rule::flags(4, 3, 2, 0b1111),
    Rule::reserved(5, 2, 2),
    Rule::non_zero(5, 4, 8, "Local APIC Address"),
    Rule::reserved(6, 3, 1),
    Rule::non_zero(6, 8, 8, "I/O SAPIC Address"),
    Rule::reserved(7, 5, 3),
    Rule::flags(7, 8, 4, 0b11),
    Rule::flags(8, 2, 2, 0b1111),
    Rule::non_zero(8, 4, 1, "Interrupt Type"),
    Rule::at_most(8, 4, 1, 3, "Interrupt Type"),
    Rule::non_zero(8, 7, 1, "I/O SAPIC Vector"),
    Rule::flags(8, 12, 4, 0b1),
    Rule::reserved(9, 2, 2),
    Rule::flags(9, 8, 4, 0b11),
    Rule::flags(10, 2, 2, 0b1111),
    Rule::reserved(11, 2, 2),
    Rule::at_most(11, 16, 4, 1, "Parking Protocol Version"),
    Rule::reserved(11, 77, 1),
    Rule::reserved(12, 2, 2),
    Rule::at_most(12, 16, 4, 0, "System Vector Base"),
    Rule::at_most(12, 20, 1, 4, "GIC Version"),
    Rule::reserved(12, 21, 3),
    Rule::reserved(13, 2, 2),
    Rule::flags(13, 16, 4, 0b1),
    Rule::reserved(14, 2, 2),
    Rule::non_zero(14, 12, 4, "Discovery Range Length"),
    Rule::reserved(15, 2, 2),
    Rule::reserved(15, 16, 4),
    Rule::at_most(16, 2, 2, 0, "Mailbox Version"),
    Rule::reserved(16, 4, 4),
    Rule::at_most(17, 2, 1, 1, "Version"),
    Rule::flags(17, 11, 4, 0b1),
    Rule::at_most(18, 2, 1, 1, "Version"),
    Rule::at_most(19, 2, 1, 1, "Version"),
    Rule::at_most(20, 2, 1, 1, "Version"),
    Rule::at_most(21, 2, 1, 1, "Version"),
    Rule::at_most(22, 2, 1, 1, "Version"),
    Rule::at_most(23, 2, 1, 1, "Version"),
    Rule::reserved(24, 3, 1),
    Rule::flags(24, 4, 4, 0b11),
];

/// Type, offset and width of each id that must be unique: I/O APIC, I/O SAPIC, MSI frame and ITS.
/// The local APIC address override has no id, but may occur only once.
const UNIQUE: &[(u16, usize, usize)] = &[(1, 2, 1), (5, 0, 1), (6, 2, 1), (13, 4, 4), (15, 4, 4)];

/// First and last type that the specification reserves, above the defined ones and below those for
/// OEMs.
const RESERVED_KINDS: core::ops::RangeInclusive<u16> = 28..=0x7f;

pub(super) fn check(table: &Madt<'_>, scratch: &mut [Slot], visit: &mut dyn FnMut(Finding)) {
    let reporter = &mut Reporter { table: Signature::MADT, visit };
    check_layout(table, size_of_kind, RULES, reporter);
    check_processor_count(table.processors().count(), reporter);
    let undefined = table.fixed().flags.0 & !MadtFlags::PCAT_COMPAT.0;
    if undefined != 0 {
        let problem = Problem::FlagsUndefined { field: "Flags", undefined: undefined.into() };
        reporter.report(Header::LENGTH.saturating_add(4), problem);
    }
    for located in table.entries() {
        match &located.entry {
            Entry::Gicc(gicc) => check_gicc(located.offset, gicc, reporter),
            Entry::Raw(raw) => check_kind(located.offset, raw.kind, reporter),
            _ => {}
        }
    }
    for processor in table.processors().filter(|processor| processor.enabled) {
        check_processor(table.header().revision, &processor, reporter);
    }
    check_processor_ids(table, scratch, reporter);
    check_controller_ids(table, scratch, reporter);
}

/// Returns the expected size of an entry. A GICC is checked separately, because it has several
/// lengths.
fn size_of_kind(raw: &RawEntry<'_>) -> Option<usize> {
    match raw.kind {
        11 => Some(raw.bytes.len().max(40)),
        // A local SAPIC ends in a string of any length.
        7 => Some(raw.bytes.len().max(16)),
        kind => expected_size(kind),
    }
}

fn check_gicc(offset: usize, gicc: &Gicc<'_>, reporter: &mut Reporter<'_>) {
    let length = gicc.extension.len().saturating_add(40);
    let expected = Gicc::LENGTHS.into_iter().rev().find(|defined| *defined <= length);
    if let Some(expected) = expected.filter(|expected| *expected != length) {
        reporter.report(offset, Problem::EntryTooLong { kind: 11, length, expected });
    }
    let defined = match length {
        82.. => 0b1111,
        80.. => 0b111,
        _ => 0b11,
    };
    let undefined = gicc.flags.0 & !defined;
    if undefined != 0 {
        let problem = Problem::FlagsUndefined { field: "Flags", undefined: undefined.into() };
        reporter.report(offset.saturating_add(12), problem);
    }
    if gicc.flags.contains(GiccFlags::ENABLED.with(GiccFlags::ONLINE_CAPABLE)) && length >= 82 {
        reporter.report(offset.saturating_add(12), Problem::EnabledAndOnlineCapable);
    }
}

fn check_kind(offset: usize, kind: u16, reporter: &mut Reporter<'_>) {
    if RESERVED_KINDS.contains(&kind) {
        reporter.report(offset, Problem::EntryReserved { kind });
    } else if kind > *RESERVED_KINDS.end() {
        reporter.report(offset, Problem::EntryUnknown { kind });
    }
}

fn check_processor(revision: u8, cpu: &Processor, reporter: &mut Reporter<'_>) {
    let apic = matches!(cpu.id, ProcessorId::Apic(_));
    if apic && cpu.online_capable && revision >= 5 {
        reporter.report(cpu.offset, Problem::EnabledAndOnlineCapable);
    }
    if cpu.id == ProcessorId::Apic(u32::MAX) {
        reporter.report(cpu.offset, Problem::ProcessorIdBroadcast { processor: cpu.id });
    }
}

/// Reports processors that repeat an id. Firmware may list one processor as local APIC and as
/// x2APIC; Linux takes the former.
fn check_processor_ids(table: &Madt<'_>, scratch: &mut [Slot], reporter: &mut Reporter<'_>) {
    let slots = table.entries().filter_map(|located| {
        let cpu = processor(&located).filter(|processor| processor.enabled)?;
        let group = matches!(located.entry, Entry::LocalX2apic(_)).into();
        Some(Slot { group, ..Slot::new(cpu.id.key(), cpu.offset) })
    });
    for (first, again) in repeats(sorted(scratch, slots)) {
        let (processor, other) = (ProcessorId::from_key(again.key), first.offset());
        let problem = if first.group == again.group {
            Problem::ProcessorIdShared { processor, other }
        } else {
            Problem::ProcessorRepeated { processor, other }
        };
        reporter.report(again.offset(), problem);
    }
}

fn check_controller_ids(table: &Madt<'_>, scratch: &mut [Slot], reporter: &mut Reporter<'_>) {
    let raw = table.entries().filter_map(|Located { offset, entry }| match entry {
        Entry::Raw(raw) => Some((offset, raw)),
        _ => None,
    });
    let slots = raw.filter_map(|(offset, raw)| {
        let (_, at, width) = UNIQUE.iter().find(|(kind, ..)| *kind == raw.kind)?;
        let id = if raw.kind == 5 { 0 } else { field(raw.bytes, *at, *width)? };
        Some(Slot::new(u64::from(raw.kind) << 32 | id, offset))
    });
    for (first, again) in repeats(sorted(scratch, slots)) {
        let [a, b, c, d, low, high, ..] = again.key.to_le_bytes();
        let (kind, id) = (u16::from_le_bytes([low, high]), u32::from_le_bytes([a, b, c, d]));
        let problem = Problem::IdRepeated { kind, id, first: first.offset() };
        reporter.report(again.offset(), problem);
    }
}
