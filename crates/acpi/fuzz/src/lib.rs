//! The checks that all targets share.

use std::fmt::Write;

use numalab_acpi::hmat::Access;
use numalab_acpi::{
    AnyTable, Builder, Format, Refusal, Severity, Slot, Table, Tables, check, slit,
};

/// Prints all findings; returns true if any of them is more than a note.
pub fn findings(tables: &Tables<'_>) -> bool {
    let mut scratch = vec![Slot::default(); tables.scratch_slots()];
    let (mut text, mut grave) = (String::new(), false);
    let mut visit = |finding: numalab_acpi::Finding| {
        text.clear();
        write!(text, "{finding}").expect("writing to a string succeeds");
        grave |= finding.severity() > Severity::Note;
    };
    check(tables, &mut scratch, &mut visit).expect("scratch has the requested size");
    grave
}

/// Reads one table in every way; what is read without an error is written again.
pub fn one(bytes: &[u8], table: AnyTable<'_>) {
    let _ = table.to_string();
    let tables = Tables::from(table);
    let mut scratch = vec![Slot::default(); tables.scratch_slots()];
    let strict = AnyTable::read_strict(bytes, &mut scratch);
    assert!(!matches!(strict, Err(Refusal::Scratch(_))));
    assert_eq!(strict.is_err(), findings(&tables));
    match table {
        AnyTable::Srat(table) => rewrite(&table, table.processors().count() + table.memory().count()),
        AnyTable::Madt(table) => rewrite(&table, table.processors().count()),
        AnyTable::Cedt(table) => rewrite(&table, table.windows().count()),
        AnyTable::Hmat(table) => {
            for at in table.localities().take(4) {
                for (from, to, value) in at.entry.cells().take(64) {
                    let _ = table.reading(&at.entry, value);
                    let _ = table.latency_ps(from, to, Access::Read);
                    let _ = table.bandwidth_mb_per_s(from, to, Access::Write);
                }
            }
            rewrite(&table, table.caches().count());
        }
        AnyTable::Slit(table) => {
            let cells: Vec<u8> = table.rows().flatten().copied().collect();
            let mut buffer = vec![0; slit::size_bytes(table.localities()).expect("the size of a table that was read")];
            slit::build(&mut buffer, *table.header(), table.localities(), &cells).expect("fits");
            assert!(table.bytes()[slit::Slit::MATRIX_OFFSET..].starts_with(&cells));
        }
    }
}

fn rewrite<F: Format>(table: &Table<'_, F>, used: usize) {
    let mut buffer = vec![0; table.bytes().len()];
    let mut builder = Builder::<F>::new(&mut buffer, *table.header(), *table.fixed());
    for located in table.entries() {
        builder.push(&located.entry);
    }
    let again = builder.finish().expect("entries that were read fit");
    let again = Table::<F>::read(again).expect("a written table is read");
    assert_eq!(again.entries().count(), table.entries().count());
    assert!(used <= table.entries().count());
}
