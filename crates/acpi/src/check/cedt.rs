//! Checks of a single CEDT.

use super::layout::{Reporter, check_layout};
use super::rules::Rule;
use super::scratch::{Slot, find, repeats, sorted};
use crate::cedt::{Cedt, Entry, FixedMemoryWindow, expected_size, interleave_ways};
use crate::finding::Finding;
use crate::header::Signature;
use crate::problem::{Problem, WindowProblem};

/// Constraints on fields from CXL 3.1 §9.18.1.
const RULES: &[Rule] = &[
    Rule::reserved(0, 1, 1),
    Rule::at_most(0, 8, 4, 1, "CXL Version"),
    Rule::reserved(0, 12, 4),
    Rule::reserved(1, 1, 1),
    Rule::reserved(1, 4, 4),
    Rule::non_zero(1, 16, 8, "Window Size"),
    Rule::at_most(1, 25, 1, 1, "Interleave Arithmetic"),
    Rule::reserved(1, 26, 2),
    Rule::at_most(1, 28, 4, 6, "Host Bridge Interleave Granularity"),
];

/// The alignment of base and size of a window that Linux requires (`cxl_acpi_cfmws_verify`).
const WINDOW_ALIGNMENT: u64 = 256 << 20;

/// The first type that the specification does not define, after CHBS, CFMWS, CXIMS, RDPAS and CSDS.
const FIRST_UNKNOWN_KIND: u16 = 5;

pub(super) fn check(table: &Cedt<'_>, scratch: &mut [Slot], visit: &mut dyn FnMut(Finding)) {
    let reporter = &mut Reporter { table: Signature::CEDT, visit };
    check_layout(table, expected_size, RULES, reporter);
    for located in table.entries() {
        match &located.entry {
            Entry::Window(window) => check_window(located.offset, window, reporter),
            Entry::Raw(raw) if raw.kind == 1 => {
                let encoded = raw.bytes.get(24).copied().unwrap_or(0);
                if interleave_ways(encoded).is_none() {
                    let (field, value) = ("Interleave Ways", encoded.into());
                    let problem = Problem::FieldUndefined { field, value, maximum: 10 };
                    reporter.report(located.offset.saturating_add(24), problem);
                }
            }
            Entry::Raw(raw) if raw.kind >= FIRST_UNKNOWN_KIND => {
                reporter.report(located.offset, Problem::EntryUnknown { kind: raw.kind });
            }
            _ => {}
        }
    }
    check_overlaps(table, scratch, reporter);
    check_targets(table, scratch, reporter);
}

fn check_window(offset: usize, window: &FixedMemoryWindow<'_>, reporter: &mut Reporter<'_>) {
    let (base, length) = (window.base, window.size_bytes);
    if length > 0 && last(window).is_none() {
        reporter.report(offset, Problem::RangeWraps { base, length });
    }
    let ways = interleave_ways(window.encoded_ways).unwrap_or(1);
    let size_alignment = WINDOW_ALIGNMENT.saturating_mul(ways.into());
    let fields = [("Base HPA", base, WINDOW_ALIGNMENT), ("Window Size", length, size_alignment)];
    for (field, value, alignment) in fields {
        if !value.is_multiple_of(alignment) {
            reporter.report(offset, WindowProblem::Unaligned { field, value, alignment }.into());
        }
    }
}

fn last(window: &FixedMemoryWindow<'_>) -> Option<u64> {
    window.base.checked_add(window.size_bytes.checked_sub(1)?)
}

fn check_overlaps(table: &Cedt<'_>, scratch: &mut [Slot], reporter: &mut Reporter<'_>) {
    let windows = table.windows().filter_map(|located| {
        let last = last(&located.entry)?;
        Some(Slot { last, ..Slot::new(located.entry.base, located.offset) })
    });
    let mut furthest = None::<&Slot>;
    for window in sorted(scratch, windows) {
        if let Some(other) = furthest.filter(|other| other.last >= window.key) {
            let (base, other) = (window.key, other.offset());
            reporter.report(window.offset(), WindowProblem::Overlap { base, other }.into());
        }
        if furthest.is_none_or(|other| window.last > other.last) {
            furthest = Some(window);
        }
    }
}

fn check_targets(table: &Cedt<'_>, scratch: &mut [Slot], reporter: &mut Reporter<'_>) {
    let slots = table.host_bridges().map(|at| Slot::new(at.entry.uid.into(), at.offset));
    let bridges = sorted(scratch, slots);
    for (first, again) in repeats(bridges) {
        let id = u32::try_from(again.key).unwrap_or(u32::MAX);
        let problem = Problem::IdRepeated { kind: 0, id, first: first.offset() };
        reporter.report(again.offset(), problem);
    }
    for located in table.windows() {
        for uid in located.entry.targets.iter() {
            if find(bridges, uid.into()).is_none() {
                reporter.report(located.offset, WindowProblem::TargetUnknown { uid }.into());
            }
        }
    }
}
