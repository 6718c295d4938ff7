//! Checks of a single HMAT.

use super::layout::{Reporter, check_layout};
use super::rules::Rule;
use super::scratch::Slot;
use crate::finding::Finding;
use crate::header::{Header, Signature};
use crate::hmat::{Associativity, Cache, Entry, Hmat, Locality, WritePolicy, expected_size};
use crate::problem::Problem;

/// Reserved fields from ACPI 6.5 §5.2.28.3 to §5.2.28.5.
const RULES: &[Rule] = &[
    Rule::reserved(0, 2, 2),
    Rule::reserved(0, 10, 2),
    Rule::reserved(0, 20, 4),
    Rule::reserved(1, 2, 2),
    Rule::flags(1, 8, 1, 0b11_1111),
    Rule::at_most(1, 9, 1, 5, "Data Type"),
    Rule::reserved(1, 11, 1),
    Rule::reserved(1, 20, 4),
    Rule::non_zero(1, 24, 8, "Entry Base Unit"),
    Rule::reserved(2, 2, 2),
    Rule::reserved(2, 12, 4),
    Rule::at_most(2, 28, 2, 1, "Address Mode"),
];

/// Fields that are reserved in a revision 2 table and used in a revision 1 table.
const REVISION_2_RULES: &[Rule] =
    &[Rule::flags(0, 8, 2, 0b1), Rule::reserved(0, 24, 8), Rule::reserved(0, 32, 8)];

pub(super) fn check(table: &Hmat<'_>, _: &mut [Slot], visit: &mut dyn FnMut(Finding)) {
    let reporter = &mut Reporter { table: Signature::HMAT, visit };
    check_layout(table, expected_size, RULES, reporter);
    if table.fixed().reserved != 0 {
        let value = table.fixed().reserved.into();
        reporter.report(Header::LENGTH, Problem::ReservedNotZero { field: "Reserved", value });
    }
    if table.header().revision >= 2 {
        for (offset, raw) in table.walk() {
            for (at, problem) in super::rules::broken(REVISION_2_RULES, &raw) {
                reporter.report(offset.saturating_add(at), problem);
            }
        }
    }
    for located in table.entries() {
        match &located.entry {
            Entry::Locality(locality) => check_overflow(located.offset, locality, reporter),
            Entry::Cache(cache) => check_cache(located.offset, cache, reporter),
            Entry::Raw(raw) if expected_size(raw).is_none() => {
                reporter.report(located.offset, Problem::EntryUnknown { kind: raw.kind });
            }
            _ => {}
        }
    }
}

/// Reports values above 32 bits, which Linux (`hmat_normalize`) treats as unknown.
fn check_overflow(offset: usize, locality: &Locality<'_>, reporter: &mut Reporter<'_>) {
    let values = locality.values.iter().filter(|value| *value != u16::MAX);
    let value = values.max().unwrap_or(0);
    let base_unit = locality.base_unit;
    let product = u64::from(value).checked_mul(base_unit);
    if product.is_none_or(|product| product > u32::MAX.into()) {
        reporter.report(offset, Problem::BaseUnitOverflow { value, base_unit });
    }
}

/// Checks the cache attributes, which start at byte 24 of the entry (ACPI 6.5 table 5.147).
fn check_cache(offset: usize, cache: &Cache<'_>, reporter: &mut Reporter<'_>) {
    let attributes = cache.attributes;
    let mut undefined = |field, value: u8, maximum: u64| {
        if u64::from(value) > maximum {
            let problem = Problem::FieldUndefined { field, value: value.into(), maximum };
            reporter.report(offset.saturating_add(24), problem);
        }
    };
    undefined("Total Cache Levels", attributes.levels(), 3);
    undefined("Cache Level", attributes.level(), 3);
    if let Associativity::Undefined(value) = attributes.associativity() {
        undefined("Cache Associativity", value, 2);
    }
    if let WritePolicy::Undefined(value) = attributes.write_policy() {
        undefined("Write Policy", value, 2);
    }
}
