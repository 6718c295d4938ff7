//! Checks of a single SRAT.

use super::layout::{Reporter, check_layout, check_processor_count};
use super::rules::{Rule, field};
use super::scratch::{Slot, repeats, sorted};
use crate::finding::Finding;
use crate::header::{Header, Signature};
use crate::problem::{LimitProblem, MAX_DOMAINS, OverlapProblem, Problem};
use crate::srat::{
    DeviceAffinity, DeviceHandle, Entry, Memory, MemoryFlags, ProcessorId, Srat, expected_size,
};
use crate::table::Located;

/// Reserved fields from ACPI 6.5 §5.2.16.1 to §5.2.16.8.
const RULES: &[Rule] = &[
    Rule::flags(0, 4, 4, 0b1),
    Rule::reserved(1, 6, 2),
    Rule::reserved(1, 24, 4),
    Rule::flags(1, 28, 4, 0b1111),
    Rule::reserved(1, 32, 8),
    Rule::reserved(2, 2, 2),
    Rule::flags(2, 12, 4, 0b1),
    Rule::reserved(2, 20, 4),
    Rule::flags(3, 10, 4, 0b1),
    Rule::reserved(4, 6, 2),
    Rule::reserved(5, 2, 1),
    Rule::at_most(5, 3, 1, 1, "Device Handle Type"),
    Rule::flags(5, 24, 4, 0b11),
    Rule::reserved(5, 28, 4),
    Rule::reserved(6, 2, 1),
    Rule::at_most(6, 3, 1, 1, "Device Handle Type"),
    Rule::flags(6, 24, 4, 0b11),
    Rule::reserved(6, 28, 4),
    Rule::reserved(7, 2, 2),
    Rule::flags(7, 12, 4, 0b1),
];

pub(super) fn check(table: &Srat<'_>, scratch: &mut [Slot], visit: &mut dyn FnMut(Finding)) {
    let reporter = &mut Reporter { table: Signature::SRAT, visit };
    check_layout(table, |raw| expected_size(raw.kind), RULES, reporter);
    let fixed = table.fixed();
    if fixed.table_revision != 1 {
        let value = fixed.table_revision;
        reporter.report(Header::LENGTH, Problem::TableRevisionNotOne { value });
    }
    if fixed.reserved != 0 {
        let (field, value) = ("Reserved", fixed.reserved);
        reporter.report(
            Srat::ENTRIES_OFFSET.saturating_sub(8),
            Problem::ReservedNotZero { field, value },
        );
    }
    check_processor_count(table.processors().count(), reporter);
    for located in table.entries() {
        check_entry(table, &located, reporter);
    }
    if !table.memory().any(|memory| memory.is_enabled() && memory.length_bytes > 0) {
        reporter.report(Srat::ENTRIES_OFFSET, Problem::NoMemory);
    }
    for memory in table.memory().filter(Memory::is_enabled) {
        check_range(&memory, reporter);
    }
    check_overlaps(table, scratch, reporter);
    check_repeats(table, scratch, reporter);
}

fn check_entry(table: &Srat<'_>, located: &Located<Entry<'_>>, reporter: &mut Reporter<'_>) {
    let offset = located.offset;
    match &located.entry {
        Entry::Raw(raw) if expected_size(raw.kind).is_none() => {
            reporter.report(offset, Problem::EntryUnknown { kind: raw.kind });
        }
        Entry::GenericInitiator(device) | Entry::GenericPort(device) => {
            check_handle(offset, device, reporter);
        }
        _ => {}
    }
    if let Some(raw) = located.entry.enabled_domain() {
        let domain = table.domain(raw);
        if domain != raw {
            reporter.report(offset, Problem::DomainBitsIgnored { raw, domain });
        }
        if domain >= MAX_DOMAINS {
            reporter.report(offset, LimitProblem::DomainTooLarge { domain }.into());
        }
    }
}

fn check_handle(offset: usize, device: &DeviceAffinity, reporter: &mut Reporter<'_>) {
    let (start, width) = match device.handle() {
        DeviceHandle::Acpi { .. } => (12, 4),
        DeviceHandle::Pci { .. } => (4, 12),
        DeviceHandle::Unknown => return,
    };
    let reserved = device.handle.get(start..).unwrap_or_default();
    if reserved.iter().any(|byte| *byte != 0) {
        let value = field(&device.handle, start, width).unwrap_or(0);
        let problem = Problem::ReservedNotZero { field: "Device Handle Reserved", value };
        // The handle is at byte 8 of the entry.
        reporter.report(offset.saturating_add(8).saturating_add(start), problem);
    }
}

fn check_range(memory: &Memory, reporter: &mut Reporter<'_>) {
    let (base, length) = (memory.base, memory.length_bytes);
    if length > 0 {
        if memory.last().is_none() {
            reporter.report(memory.offset, Problem::RangeWraps { base, length });
        }
    } else if memory.flags.contains(MemoryFlags::HOT_PLUGGABLE) {
        reporter.report(memory.offset, Problem::HotPlugEmpty { base });
    } else {
        reporter.report(memory.offset, Problem::MemoryEmpty { base });
    }
}

/// Compares each range with the earlier ones that reach furthest; one of another domain takes
/// precedence over one of the same domain. If one of the two is RAM, Linux 6.1 drops the SRAT,
/// hot-pluggable or not; if none is, as with NVDIMMs and the hot-plug range of QEMU, it does not
/// (both were tried).
fn check_overlaps(table: &Srat<'_>, scratch: &mut [Slot], reporter: &mut Reporter<'_>) {
    let enabled = table.memory().filter(Memory::is_enabled);
    let ranges = sorted(
        scratch,
        enabled.filter_map(|memory| {
            let (last, group) = (memory.last()?, memory.domain);
            Some(Slot { last, group, ..Slot::new(memory.base, memory.offset) })
        }),
    );
    let (mut any, mut ram) = (Furthest::default(), Furthest::default());
    for range in ranges {
        let is_ram = is_ram(table, range);
        let with_ram =
            if is_ram { any.of_another_domain(range) } else { ram.of_another_domain(range) };
        if let Some(other) = with_ram {
            reporter.report(range.offset(), across_domains(range, other));
        } else if let Some(other) = any.of_another_domain(range) {
            let (base, domain) = (range.key, range.group);
            let (other_domain, other) = (other.group, other.offset());
            let problem = OverlapProblem::HotPlug { base, domain, other_domain, other };
            reporter.report(range.offset(), problem.into());
        } else if let Some(other) = any.first.filter(|other| other.last >= range.key) {
            let (base, domain, other) = (range.key, range.group, other.offset());
            let problem = OverlapProblem::WithinDomain { base, domain, other };
            reporter.report(range.offset(), problem.into());
        }
        any.add(range);
        if is_ram {
            ram.add(range);
        }
    }
}

/// Returns true if an entry describes memory that is present when the system starts.
fn is_ram(table: &Srat<'_>, range: &Slot) -> bool {
    // The flags are at byte 28 of the entry.
    let flags = field(table.bytes(), range.offset().saturating_add(28), 4).unwrap_or(0);
    let other = MemoryFlags::HOT_PLUGGABLE.with(MemoryFlags::NON_VOLATILE);
    flags & u64::from(other.0) == 0
}

/// The range so far that reaches furthest, and the furthest one of another domain.
#[derive(Default)]
struct Furthest<'s> {
    first: Option<&'s Slot>,
    other: Option<&'s Slot>,
}

impl<'s> Furthest<'s> {
    /// Returns the furthest range of another domain that `range` overlaps.
    fn of_another_domain(&self, range: &Slot) -> Option<&'s Slot> {
        let across = match self.first {
            Some(slot) if slot.group != range.group => Some(slot),
            _ => self.other,
        };
        across.filter(|other| other.last >= range.key)
    }

    fn add(&mut self, range: &'s Slot) {
        match self.first {
            Some(slot) if range.last < slot.last => {
                let further = self.other.is_none_or(|other| range.last > other.last);
                if range.group != slot.group && further {
                    self.other = Some(range);
                }
            }
            Some(slot) if range.group != slot.group => {
                (self.first, self.other) = (Some(range), Some(slot));
            }
            _ => self.first = Some(range),
        }
    }
}

fn across_domains(range: &Slot, other: &Slot) -> Problem {
    Problem::Overlap(OverlapProblem::AcrossDomains {
        base: range.key,
        domain: range.group,
        other_domain: other.group,
        other: other.offset(),
    })
}

fn check_repeats(table: &Srat<'_>, scratch: &mut [Slot], reporter: &mut Reporter<'_>) {
    let enabled = table.processors().filter(|processor| processor.enabled);
    let processors = sorted(
        scratch,
        enabled.map(|processor| {
            let group = processor.domain;
            Slot { group, ..Slot::new(processor.id.key(), processor.offset) }
        }),
    );
    for (first, again) in repeats(processors) {
        let processor = ProcessorId::from_key(again.key);
        let (domain, other_domain, other) = (again.group, first.group, first.offset());
        let problem = if domain == other_domain {
            Problem::ProcessorRepeated { processor, other }
        } else {
            Problem::ProcessorInTwoDomains { processor, domain, other_domain, other }
        };
        reporter.report(again.offset(), problem);
    }
}
