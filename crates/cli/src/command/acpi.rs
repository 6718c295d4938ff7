//! `numalab acpi`: tables shown, checked and built.

mod build;
mod show;

use std::path::Path;

use numalab_acpi::Severity;

use crate::args::{AcpiCommand, TableArgs};
use crate::failure::{Code, Failure};
use crate::output;
use crate::tables::{self, Loaded};

/// Runs the subcommand.
pub(crate) fn run(command: &AcpiCommand) -> Result<(), Failure> {
    match command {
        AcpiCommand::Show { tables, format } => show::run(tables, *format),
        AcpiCommand::Check { tables } => run_check(&load(tables)?, tables.strict),
        AcpiCommand::Build { machine, output, dry_run } => build::run(machine, output, *dry_run),
    }
}

/// The tables that the arguments name.
fn load(args: &TableArgs) -> Result<Vec<Loaded>, Failure> {
    if args.system {
        return tables::of_directory(Path::new(tables::SYSTEM_TABLES));
    }
    tables::of_files(&args.files)
}

/// Prints every finding; fails if one is an error, or a warning under `strict`.
fn run_check(loaded: &[Loaded], strict: bool) -> Result<(), Failure> {
    let (read, refused) = tables::read_all(loaded);
    let mut text = String::new();
    for refusal in &refused {
        text.push_str(&format!("error: {refusal}\n"));
    }
    let (found, worst) = tables::findings(&read);
    for finding in found {
        text.push_str(&format!("{finding}\n"));
    }
    output::print(&text)?;
    let limit = if strict { Severity::Warning } else { Severity::Error };
    if !refused.is_empty() || worst.is_some_and(|worst| worst >= limit) {
        return Err(Failure::new(Code::CheckFailed, "the tables have errors"));
    }
    Ok(())
}
