//! `numalab guest`: boots, lists and pins guests, and manages the cache they boot from.

mod boot;
mod image;
mod kernel;
mod memory_emulator;
mod pin;
mod raw;
mod report;
mod run;

use std::process::ExitCode;

use numalab_formats::size::format_rounded;
use numalab_guest::{RunningGuest, Runtime};

use crate::args::GuestCommand;
use crate::failure::Failure;
use crate::output;

/// Runs the subcommand; the exit code is that of the guest's command where there is one.
pub(crate) fn run(command: &GuestCommand) -> Result<ExitCode, Failure> {
    let done = match command {
        GuestCommand::Run(args) => return run::run(args),
        GuestCommand::Shell(args) => return run::shell(args),
        GuestCommand::List => list(),
        GuestCommand::Image(args) => image::run(args),
        GuestCommand::Pin(args) => pin::run(args),
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// Prints the running guests.
fn list() -> Result<(), Failure> {
    let runtime = Runtime::open()?;
    let guests = runtime.guests()?;
    if guests.is_empty() {
        return output::print("no guest is running\n");
    }
    output::print(&guests.iter().map(lines).collect::<String>())
}

/// Describes the guest in one line, and the address to reach it.
fn lines(guest: &RunningGuest) -> String {
    let record = &guest.record;
    let qemu = guest.qemu.map_or("QEMU not started yet".to_owned(), |id| format!("QEMU {id}"));
    format!(
        "{qemu}: {} nodes, {} cpus, {}: {}\n  numalab guest pin --qmp {}/control.sock\n",
        record.nodes,
        record.cpus,
        format_rounded(record.memory_bytes),
        record.command.join(" "),
        guest.directory.display()
    )
}
