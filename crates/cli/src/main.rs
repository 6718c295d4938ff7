//! The numalab command: typed arguments, then checked plans, then calls.
#![forbid(unsafe_code)]

mod args;
mod command;
mod failure;
mod moved;
mod output;
mod progress;

use std::env;
use std::io::ErrorKind;
use std::process::ExitCode;

use clap::Parser;

use crate::command::Cli;
use crate::failure::{Code, Failure};

fn main() -> ExitCode {
    // In the guests that `numalab guest` boots, this program is process 1.
    if numalab_guest_agent::init::is_wanted() {
        numalab_guest_agent::init::main();
    }
    if let Err(error) = numalab_host::report_file_limit() {
        numalab_host::note(error);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => {
            if usage.use_stderr() {
                match moved::moved(&usage) {
                    Some(place) => numalab_host::note(place),
                    None => drop(usage.print()),
                }
                return failure::usage(env::args_os());
            }
            // Help and version are results; a closed pipe is not an error of numalab.
            return match usage.print() {
                Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                    Failure::new(Code::Failed, format!("standard output: {error}")).report()
                }
                _ => ExitCode::SUCCESS,
            };
        }
    };
    output::set_redact(cli.redact);
    if cli.quiet {
        output::set_quiet();
    }
    match command::run(cli.command) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
