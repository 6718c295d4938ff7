//! One module for each command, what measuring commands share, and which command runs what.

mod acpi;
mod advise;
mod bandwidth;
mod bind;
mod bisect;
mod c2c;
mod compare;
mod completions;
mod emulate;
mod explore;
mod fleet;
mod guest;
mod health;
mod knobs;
mod latency;
mod loaded;
mod machine;
mod man;
mod mark;
mod measure;
mod measuring;
mod probe;
mod ranks;
mod report;
mod scale;
mod self_test;
mod study;
mod topology;
pub(crate) mod wrapper;

use std::process::ExitCode;

use crate::args::Command;
use crate::failure::Failure;

/// The exit code of a command that did what it should; a guest's is that of its own command.
pub(crate) fn run(command: Command) -> Result<ExitCode, Failure> {
    let done = match command {
        Command::Guest(args) => return guest::run(&args.command),
        Command::Probe(args) => probe::run(&args.command),
        Command::Bisect(args) => return bisect::run(&args),
        Command::Knobs(args) => return knobs::run(&args.command),
        Command::Machine(args) => machine::run(&args.command),
        Command::Mark(args) => return mark::run(&args).map_err(Failure::of_wrapper),
        Command::Advise(args) => advise::run(&args),
        Command::Emulate(args) => return emulate::run(&args).map_err(Failure::of_wrapper),
        Command::Measure(args) => measure::run(&args),
        Command::Topology(args) => topology::run(&args),
        Command::Acpi(args) => acpi::run(&args.command),
        Command::Latency(args) => latency::run(&args),
        Command::Bandwidth(args) => bandwidth::run(&args),
        Command::Loaded(args) => loaded::run(&args),
        Command::C2c(args) => c2c::run(&args),
        Command::Study(args) => study::run(&args.command),
        Command::Bind(args) => return bind::run(&args).map_err(Failure::of_wrapper),
        Command::Scale(args) => scale::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Explore(args) => explore::run(&args),
        Command::Fleet(args) => fleet::run(&args.command),
        Command::Health(args) => health::run(&args),
        Command::SelfTest(args) => self_test::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Completions { shell } => completions::run(shell),
        Command::Man { directory } => man::run(&directory),
    };
    done.map(|()| ExitCode::SUCCESS)
}
