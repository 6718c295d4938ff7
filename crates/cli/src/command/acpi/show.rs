//! `numalab acpi show`.

use numalab_acpi::{AnyTable, Slot, Tables};
use numalab_record::Kind;
use serde_json::{Value, json};

use super::findings;
use super::load::{Loaded, load, read_all};
use crate::args::{AcpiFormat, TableArgs};
use crate::failure::{Code, Failure};
use crate::output;

/// Prints the tables' entries, then what is odd about them.
pub(super) fn run(args: &TableArgs, format: AcpiFormat) -> Result<(), Failure> {
    let loaded = load(args)?;
    if args.strict {
        loaded.iter().try_for_each(refuse_oddities)?;
    }
    let (tables, refused) = read_all(&loaded);
    let text = match format {
        AcpiFormat::Text => text(&loaded, &tables),
        AcpiFormat::Json => {
            output::json_line(serde_json::to_string_pretty(&document(&loaded, &tables)))?
        }
    };
    output::print(&text)?;
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

fn text(loaded: &[Loaded], tables: &Tables<'_>) -> String {
    let mut text = String::new();
    for table in loaded {
        if let Ok(read) = AnyTable::read(&table.bytes) {
            text.push_str(&format!("{}\n{read}\n\n", table.place));
        }
    }
    let (found, _) = findings(tables);
    text.push_str(&found.join("\n"));
    if !found.is_empty() {
        text.push('\n');
    }
    text
}

/// Each table with its header and its entries, a line each, and the findings.
fn document(loaded: &[Loaded], tables: &Tables<'_>) -> Value {
    let shown = loaded.iter().filter_map(|table| {
        let read = AnyTable::read(&table.bytes).ok()?;
        let header = read.header();
        let lines: Vec<String> = read.to_string().lines().skip(1).map(str::to_owned).collect();
        Some(json!({
            "place": table.place,
            "signature": header.signature.to_string(),
            "revision": header.revision,
            "length_bytes": header.length,
            "entries": lines,
        }))
    });
    let (found, _) = findings(tables);
    json!({ "schema": Kind::Acpi, "tables": shown.collect::<Vec<_>>(), "findings": found })
}
