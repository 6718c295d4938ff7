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

use crate::args::{Cli, Command};
use crate::failure::Failure;

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
    match run(cli.command) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

/// The exit code of a command that did what it should; a guest's is that of its own command.
fn run(command: Command) -> Result<ExitCode, Failure> {
    let done = match command {
        Command::Guest(args) => return command::guest::run(&args.command),
        Command::Probe(args) => command::probe::run(&args.command),
        Command::Bisect(args) => return command::bisect::run(&args),
        Command::Knobs(args) => return command::knobs::run(&args.command),
        Command::Machine(args) => command::machine::run(&args.command),
        Command::Mark(args) => return command::mark::run(&args).map_err(Failure::of_wrapper),
        Command::Advise(args) => command::advise::run(&args),
        Command::Emulate(args) => return command::emulate::run(&args).map_err(Failure::of_wrapper),
        Command::Measure(args) => command::measure::run(&args),
        Command::Topology(args) => command::topology::run(&args),
        Command::Acpi(args) => command::acpi::run(&args.command),
        Command::Latency(args) => command::latency::run(&args),
        Command::Bandwidth(args) => command::bandwidth::run(&args),
        Command::Loaded(args) => command::loaded::run(&args),
        Command::C2c(args) => command::c2c::run(&args),
        Command::Study(args) => command::study::run(&args.command),
        Command::Bind(args) => return command::bind::run(&args).map_err(Failure::of_wrapper),
        Command::Scale(args) => command::scale::run(&args),
        Command::Compare(args) => command::compare::run(&args),
        Command::Explore(args) => command::explore::run(&args),
        Command::Fleet(args) => command::fleet::run(&args.command),
        Command::Health(args) => command::health::run(&args),
        Command::Report(args) => command::report::run(&args),
        Command::Completions { shell } => command::completions::run(shell),
        Command::Man { directory } => command::man::run(&directory),
    };
    done.map(|()| ExitCode::SUCCESS)
}
