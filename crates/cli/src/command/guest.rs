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

use numalab_guest::Runtime;

use crate::args::GuestCommand;
use crate::failure::Failure;
use crate::output;

/// Runs the subcommand; the exit code is that of the guest's command, if there is one.
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
    let guests = Runtime::open()?.guests()?;
    output::print(&match guests.is_empty() {
        true => "no guest is running\n".to_owned(),
        false => guests.iter().map(ToString::to_string).collect(),
    })
}
