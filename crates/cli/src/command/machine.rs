//! `numalab machine`: files that describe a machine and the costs of its memory.

mod capture;

use numalab_formats::gallery;

use super::{acpi, self_test};
use crate::args::MachineCommand;
use crate::failure::Failure;
use crate::output;

/// Runs the subcommand.
pub(crate) fn run(command: &MachineCommand) -> Result<(), Failure> {
    match command {
        MachineCommand::List => list(),
        MachineCommand::Show { machine } => output::print(known(machine)?),
        MachineCommand::Capture(args) => capture::run(args),
        MachineCommand::Acpi(args) => acpi::run(&args.command),
        MachineCommand::SelfTest(args) => self_test::run(args),
    }
}

fn list() -> Result<(), Failure> {
    let width = gallery::names().map(str::len).max().unwrap_or_default();
    let line = |(name, text): &(&str, &str)| format!("{name:width$}  {}\n", gallery::title(text));
    output::print(&gallery::MACHINES.iter().map(line).collect::<String>())
}

/// Returns the text of a bundled machine file.
fn known(name: &str) -> Result<&'static str, Failure> {
    gallery::machine(name).ok_or_else(|| {
        let names: Vec<&str> = gallery::names().collect();
        Failure::bad_input(format!("{name}: expected one of {}", names.join(", ")))
    })
}
