//! Reads any bytes as a table, as several tables of one machine, and as an acpidump text.
//!
//! A table that is read without an error is written again and must come back equal.

#![no_main]

use libfuzzer_sys::fuzz_target;
use numalab_acpi::acpidump::Dump;
use numalab_acpi::{AnyTable, Tables};
use numalab_acpi_fuzz::{findings, one};

fuzz_target!(|bytes: &[u8]| {
    dump(bytes);
    let mut tables = Tables::default();
    let mut rest = bytes;
    while let Ok(table) = AnyTable::read(rest) {
        let length = table.header().length as usize;
        one(rest, table);
        tables.insert(table);
        rest = &rest[length..];
    }
    findings(&tables);
});

fn dump(bytes: &[u8]) {
    let mut buffer = [0; 4096];
    for table in Dump::new(bytes) {
        if let (Ok(size), Ok(decoded)) = (table.size_bytes(), table.decode(&mut buffer)) {
            assert_eq!(size, decoded.len());
        }
    }
}
