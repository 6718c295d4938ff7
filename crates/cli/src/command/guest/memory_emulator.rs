//! From arguments to a guest's emulated memory system, and its report.

use std::path::Path;
use std::time::Duration;

use numalab_guest::MemoryEmulator;
use numalab_image::Architecture;
use numalab_places::machine::Described;

use crate::args::MemoryEmulatorArgs;
use crate::failure::{Code, Failure};
use crate::output;

/// Time limit of a guest's boot while instructions and accesses are counted, on a loaded host.
pub(super) const BOOT_LIMIT: Duration = Duration::from_secs(900);

/// Returns the memory system that the arguments describe, if any; emulated tiers cost what the
/// arguments give.
pub(super) fn wanted(
    args: &MemoryEmulatorArgs,
    described: &Described,
    architecture: Architecture,
) -> Result<Option<MemoryEmulator>, Failure> {
    if !args.wanted() && described.tiers.is_none() && described.file.is_none() {
        return Ok(None);
    }
    args.emulate_report.as_deref().map_or(Ok(()), expect_place)?;
    let machine = described.emulated_memory(args.costs.given())?;
    let mode = args.emulate_mode.unwrap_or_default();
    Ok(Some(MemoryEmulator::find(mode, architecture, machine)?))
}

/// Refuses a report file that could not be written after the guest has ended.
fn expect_place(file: &Path) -> Result<(), Failure> {
    let directory = match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    if directory.is_dir() && !file.is_dir() {
        return Ok(());
    }
    let file = file.display();
    Err(Failure::bad_input(format!(
        "--emulate-report {file}: expected a file in an existing directory"
    )))
}

/// Writes the emulator's report to the user's file.
pub(super) fn keep_report(file: Option<&Path>, report: Option<&str>) -> Result<(), Failure> {
    let Some(file) = file else { return Ok(()) };
    let none = || Failure::new(Code::Failed, "the memory emulator wrote no report");
    output::save(file, report.ok_or_else(none)?)
}
