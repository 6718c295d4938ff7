//! Shows the tables in files, either binary or as written by acpidump, with their findings.

use std::error::Error;

use numalab_acpi::acpidump::Dump;
use numalab_acpi::{AnyTable, Slot, Tables, check};

fn main() -> Result<(), Box<dyn Error>> {
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path)?;
        let mut buffer = vec![0; bytes.len()];
        let mut dumped = Dump::new(&bytes).peekable();
        if dumped.peek().is_none() {
            show(&path, &bytes)?;
        }
        for table in dumped {
            show(&path, table.decode(&mut buffer)?)?;
        }
    }
    Ok(())
}

fn show(path: &str, bytes: &[u8]) -> Result<(), Box<dyn Error>> {
    let table = match AnyTable::read(bytes) {
        Ok(table) => table,
        Err(finding) => {
            println!("{path}: error: {finding}");
            return Ok(());
        }
    };
    println!("{path}: {table}");
    let tables = Tables::from(table);
    let mut scratch = vec![Slot::default(); tables.scratch_slots()];
    check(&tables, &mut scratch, &mut |finding| {
        println!("{}: {finding}", finding.severity());
    })?;
    Ok(())
}
