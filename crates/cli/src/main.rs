//! The numalab command: typed arguments, then checked plans, then calls.
#![forbid(unsafe_code)]

mod args;
mod command;
mod failure;
mod input;
mod output;
mod progress;
mod source;
mod tables;

use std::env;
use std::process::ExitCode;

use clap::Parser;

use crate::command::Cli;

fn main() -> ExitCode {
    // In the guests that `numalab guest` boots, this program is process 1.
    if numalab_guest_agent::init::is_wanted() {
        numalab_guest_agent::init::main();
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => {
            // Help and version are no errors; a closed pipe is none of ours.
            let _ = usage.print();
            return if usage.use_stderr() {
                failure::usage(env::args_os())
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    output::set_redact(cli.redact);
    match command::run(cli.command) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
