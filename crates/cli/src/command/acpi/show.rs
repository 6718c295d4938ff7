//! `numalab machine acpi show`.

use numalab_acpi::{AnyTable, Severity};
use numalab_record::system::{AcpiShown, AcpiTable};

use super::load;
use crate::args::{Format, TableArgs};
use crate::failure::{Code, Failure};
use crate::output;
use crate::tables::{Loaded, findings, read_all};

/// Maximum number of entries shown for a table: more than the SRAT of any machine has.
const MOST_ENTRIES: usize = 1 << 17;

/// Prints the tables' entries, then the anomalies found in them.
pub(super) fn run(args: &TableArgs, format: Format) -> Result<(), Failure> {
    let loaded = load(args)?;
    let (shown, _) = document(&loaded);
    if !shown.tables.is_empty() {
        output::show(&shown, format)?;
    }
    match shown.refused.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(Code::CheckFailed, shown.refused.join("\n"))),
    }
}

/// Describes each table with its header and one line per entry, and returns the highest severity
/// found.
pub(super) fn document(loaded: &[Loaded]) -> (AcpiShown, Option<Severity>) {
    let (tables, refused) = read_all(loaded);
    let shown = loaded.iter().filter_map(|table| {
        let read = AnyTable::read(&table.bytes).ok()?;
        let header = read.header();
        let text = read.to_string();
        let mut lines = text.lines().map(str::to_owned);
        Some(AcpiTable {
            place: table.place.clone(),
            signature: header.signature.to_string(),
            revision: header.revision,
            length_bytes: header.length,
            header: lines.next().unwrap_or_default(),
            entries: lines.take(MOST_ENTRIES).collect(),
        })
    });
    let (findings, worst) = findings(&tables);
    (AcpiShown { tables: shown.collect(), refused, findings }, worst)
}
