//! `numalab acpi`: tables shown, checked and built.

mod build;
mod load;
mod show;

use std::path::Path;

use numalab_acpi::{Severity, Slot, Tables, check};
use numalab_topology::{Finding, Machine};

use self::load::Loaded;
use crate::args::AcpiCommand;
use crate::failure::{Code, Failure};
use crate::output;

/// Runs the subcommand.
pub(crate) fn run(command: &AcpiCommand) -> Result<(), Failure> {
    match command {
        AcpiCommand::Show { tables, format } => show::run(tables, *format),
        AcpiCommand::Check { tables } => run_check(&load::load(tables)?, tables.strict),
        AcpiCommand::Build { machine, output, dry_run } => build::run(machine, output, *dry_run),
    }
}

/// The machine that the tables of a directory, or of this system, describe.
pub(crate) fn machine(directory: Option<&Path>) -> Result<(Machine, Vec<Finding>), Failure> {
    let loaded = load::load_directory(directory.unwrap_or(Path::new(load::SYSTEM_TABLES)))?;
    let (tables, refused) = load::read_all(&loaded);
    if let Some(refusal) = refused.first() {
        return Err(Failure::new(Code::CheckFailed, refusal));
    }
    let (lines, worst) = findings(&tables);
    if worst == Some(Severity::Error) {
        return Err(Failure::new(Code::CheckFailed, lines.join("\n")));
    }
    let machine = Machine::from_tables(&tables);
    let findings = machine.validate();
    Ok((machine, findings))
}

/// Prints every finding; fails if one is an error, or a warning under `strict`.
fn run_check(loaded: &[Loaded], strict: bool) -> Result<(), Failure> {
    let (tables, refused) = load::read_all(loaded);
    let mut text = String::new();
    for refusal in &refused {
        text.push_str(&format!("error: {refusal}\n"));
    }
    let (found, worst) = findings(&tables);
    for line in found {
        text.push_str(&line);
        text.push('\n');
    }
    output::print(&text)?;
    let limit = if strict { Severity::Warning } else { Severity::Error };
    if !refused.is_empty() || worst.is_some_and(|worst| worst >= limit) {
        return Err(Failure::new(Code::CheckFailed, "the tables have errors"));
    }
    Ok(())
}

/// Every finding as a line, and the gravest severity.
fn findings(tables: &Tables<'_>) -> (Vec<String>, Option<Severity>) {
    let mut scratch = vec![Slot::default(); tables.scratch_slots()];
    let (mut lines, mut worst) = (Vec::new(), None);
    let visited = check(tables, &mut scratch, &mut |finding| {
        worst = worst.max(Some(finding.severity()));
        lines.push(format!("{}: {finding}", finding.severity()));
    });
    debug_assert!(visited.is_ok(), "the scratch has as many slots as were asked for");
    (lines, worst)
}
