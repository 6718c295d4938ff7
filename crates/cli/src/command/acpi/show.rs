//! `numalab machine acpi show`.

use numalab_places::machine::tables::shown;

use super::load;
use crate::args::{Format, TableArgs};
use crate::failure::{Code, Failure};
use crate::output;

/// Prints the tables' entries, then the anomalies found in them.
pub(super) fn run(args: &TableArgs, format: Format) -> Result<(), Failure> {
    let loaded = load(args)?;
    let (shown, _) = shown(&loaded);
    if !shown.tables.is_empty() {
        output::show(&shown, format)?;
    }
    match shown.refused.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(Code::CheckFailed, shown.refused.join("\n"))),
    }
}
