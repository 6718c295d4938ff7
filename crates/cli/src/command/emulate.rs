//! `numalab emulate`.

use std::path::Path;
use std::process::ExitCode;

use numalab_guest::emulator::PLUGIN;
use numalab_guest::program::{
    EmulatedProgram, Followed, FollowedError, ProgramOutcome, ThreadPlacement,
};
use numalab_host::note;
use numalab_topology::Machine;

use crate::args::EmulateArgs;
use crate::command::wrapper;
use crate::failure::{Code, Failure};
use crate::output;

/// Runs a program on an emulated machine, reports the cost of its memory, and exits with its code.
pub(crate) fn run(args: &EmulateArgs) -> Result<ExitCode, Failure> {
    let described = args.machine.request().describe_for_program()?;
    described.findings.iter().for_each(note);
    let program = EmulatedProgram::new(
        PLUGIN.find()?,
        described.followed_memory(args.costs.given())?,
        threads(&args.threads, &described.machine)?,
        args.command.clone(),
    );
    let program = EmulatedProgram { exact: args.exact, ..program };
    if args.dry_run {
        let words = program.command_line(Path::new("DIRECTORY"))?;
        output::print(&output::shell_lines(&words))?;
        return Ok(ExitCode::SUCCESS);
    }
    let outcome = program.run()?;
    if let Some(followed) = followed(&outcome)? {
        deliver(args, &followed)?;
    }
    Ok(wrapper::exit_code(outcome.status))
}

/// Returns the emulator's record of a program that has ended; `None`, with a note, if a signal ended
/// it before there was one.
pub(super) fn followed(outcome: &ProgramOutcome) -> Result<Option<Followed>, Failure> {
    match Followed::of(outcome) {
        Err(signalled @ FollowedError::Signalled { .. }) => {
            note(signalled);
            Ok(None)
        }
        followed => Ok(Some(followed?)),
    }
}

/// Returns the positions of the cpus that threads take in turn.
pub(super) fn threads(
    placement: &ThreadPlacement,
    machine: &Machine,
) -> Result<Vec<usize>, Failure> {
    placement.cpus(machine).map_err(|error| Failure::bad_input(format!("--threads: {error}")))
}

/// Prints or writes the report of all processes.
fn deliver(args: &EmulateArgs, followed: &Followed) -> Result<(), Failure> {
    followed.remarks().into_iter().for_each(note);
    args.report.deliver(&followed.report, output::print_apart)?;
    describes(followed)
}

/// Refuses a report that does not describe the program.
pub(super) fn describes(followed: &Followed) -> Result<(), Failure> {
    match followed.misleading() {
        Some(why) => Err(Failure::new(Code::Lacking, why)),
        None => Ok(()),
    }
}
