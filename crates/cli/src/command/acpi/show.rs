//! `numalab acpi show`.

use numalab_acpi::{AnyTable, Slot, Tables};
use numalab_record::Kind;
use serde_json::{Value, json};

use super::load;
use crate::args::{AcpiFormat, TableArgs};
use crate::failure::{Code, Failure};
use crate::output;
use crate::tables::{Loaded, findings, read_all};

/// Entries of a table in JSON: more than the SRAT of any machine has.
const MOST_ENTRIES: usize = 1 << 17;

/// Prints the tables' entries, then what is odd about them.
pub(super) fn run(args: &TableArgs, format: AcpiFormat) -> Result<(), Failure> {
    let loaded = load(args)?;
    if args.strict {
        loaded.iter().try_for_each(refuse_oddities)?;
    }
    let (tables, refused) = read_all(&loaded);
    match format {
        AcpiFormat::Text => print(&loaded, &tables)?,
        AcpiFormat::Json => {
            let json = serde_json::to_string_pretty(&document(&loaded, &tables));
            output::print(&output::json_line(json)?)?;
        }
    }
    match refused.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(Code::CheckFailed, refused.join("\n"))),
    }
}

fn refuse_oddities(table: &Loaded) -> Result<(), Failure> {
    let slots = AnyTable::read(&table.bytes).map_or(0, |read| Tables::from(read).scratch_slots());
    let mut scratch = vec![Slot::default(); slots];
    match AnyTable::read_strict(&table.bytes, &mut scratch) {
        Ok(_) => Ok(()),
        Err(refusal) => Err(Failure::new(Code::CheckFailed, format!("{}: {refusal}", table.place))),
    }
}

/// Prints table by table, since a file can hold many.
fn print(loaded: &[Loaded], tables: &Tables<'_>) -> Result<(), Failure> {
    for table in loaded {
        if let Ok(read) = AnyTable::read(&table.bytes) {
            output::print(&format!("{}\n{read}\n\n", table.place))?;
        }
    }
    let (found, _) = findings(tables);
    output::print(&found.iter().map(|finding| format!("{finding}\n")).collect::<String>())
}

/// Each table with its header and its entries, a line each, and the findings.
fn document(loaded: &[Loaded], tables: &Tables<'_>) -> Value {
    let shown = loaded.iter().filter_map(|table| {
        let read = AnyTable::read(&table.bytes).ok()?;
        let header = read.header();
        let text = read.to_string();
        let lines: Vec<&str> = text.lines().skip(1).take(MOST_ENTRIES).collect();
        Some(json!({
            "place": table.place,
            "signature": header.signature.to_string(),
            "revision": header.revision,
            "length_bytes": header.length,
            "entries": lines,
        }))
    });
    let (found, _) = findings(tables);
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    json!({ "schema": Kind::Acpi, "tables": shown.collect::<Vec<_>>(), "findings": found })
}
