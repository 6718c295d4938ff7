//! `numalab machine acpi`: tables shown, checked and built.

mod build;

use std::path::Path;

use numalab_acpi::Severity;
use numalab_places::machine::tables::{self, Loaded};
use numalab_results::system::AcpiChecked;

use crate::args::{AcpiCommand, Format, TableArgs};
use crate::failure::{Code, Failure};
use crate::output;

pub(crate) fn run(command: &AcpiCommand) -> Result<(), Failure> {
    match command {
        AcpiCommand::Show { tables, format } => show(tables, *format),
        AcpiCommand::Check { tables, strict, format } => run_check(tables, *strict, *format),
        AcpiCommand::Build { machine, output, dry_run } => build::run(machine, output, *dry_run),
    }
}

fn load(args: &TableArgs) -> Result<Vec<Loaded>, Failure> {
    if args.system {
        return Ok(tables::of_directory(Path::new(tables::SYSTEM_TABLES))?);
    }
    Ok(tables::of_files(&args.files)?)
}

/// Prints the tables' entries, then the anomalies found in them.
fn show(args: &TableArgs, format: Format) -> Result<(), Failure> {
    let (shown, _) = tables::shown(&load(args)?);
    if !shown.tables.is_empty() {
        output::show_taken(&shown, format)?;
    }
    match shown.refused.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(Code::CheckFailed, shown.refused.join("\n"))),
    }
}

/// Shows every finding; fails if one is an error, or a warning under `strict`.
fn run_check(args: &TableArgs, strict: bool, format: Format) -> Result<(), Failure> {
    let (shown, worst) = tables::shown(&load(args)?);
    let limit = if strict { Severity::Warning } else { Severity::Error };
    let failed = !shown.refused.is_empty() || worst.is_some_and(|worst| worst >= limit);
    output::show_taken(&AcpiChecked(shown), format)?;
    match failed {
        true => Err(Failure::new(Code::CheckFailed, "the tables have errors")),
        false => Ok(()),
    }
}
