//! `numalab knobs`: shows, sets and restores settings of the system.

mod list;
mod restore;
mod run;

use std::process::ExitCode;

use crate::args::KnobsCommand;
use crate::failure::Failure;

/// Runs the subcommand; the exit code of `run` is that of its command.
pub(crate) fn run(command: &KnobsCommand) -> Result<ExitCode, Failure> {
    match command {
        KnobsCommand::List(args) => list::run(args).map(|()| ExitCode::SUCCESS),
        KnobsCommand::Restore(args) => restore::run(args).map(|()| ExitCode::SUCCESS),
        KnobsCommand::Run(args) => run::run(args).map_err(Failure::of_wrapper),
    }
}
