//! `numalab guest`: boots, lists and pins guests, and manages the cache they boot from.

mod boot;
mod image;
mod kernel;
mod list;
mod memory_emulator;
mod pin;
mod raw;
mod report;
mod run;
mod shell;

use std::process::ExitCode;

use crate::args::GuestCommand;
use crate::failure::Failure;

/// Runs the subcommand; the exit code is that of the guest's command where there is one.
pub(crate) fn run(command: &GuestCommand) -> Result<ExitCode, Failure> {
    let done = match command {
        GuestCommand::Run(args) => return run::run(args),
        GuestCommand::Shell(args) => return shell::run(args),
        GuestCommand::List => list::run(),
        GuestCommand::Image(args) => image::run(args),
        GuestCommand::Pin(args) => pin::run(args),
    };
    done.map(|()| ExitCode::SUCCESS)
}
