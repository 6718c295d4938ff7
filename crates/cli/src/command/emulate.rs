//! `numalab emulate`.

use std::path::Path;
use std::process::ExitCode;

use numalab_guest::program::{EmulatedProgram, Followed, FollowedError, ProgramOutcome};
use numalab_host::note;

use crate::args::EmulateArgs;
use crate::command::wrapper;
use crate::failure::Failure;
use crate::output;

/// Runs a program on an emulated machine, reports the cost of its memory, and exits with its code.
pub(crate) fn run(args: &EmulateArgs) -> Result<ExitCode, Failure> {
    let described = args.machine.request().describe_for_program()?;
    described.findings.iter().for_each(note);
    let memory = described.followed_memory(args.costs.given())?;
    let threads = args.threads.cpus(&described.machine);
    let threads = threads.map_err(|error| Failure::bad_input(format!("--threads: {error}")))?;
    let program = EmulatedProgram::new(memory, threads, args.command.clone())?;
    let program = EmulatedProgram { exact: args.exact, ..program };
    if args.dry_run {
        let words = program.command_line(Path::new("DIRECTORY"))?;
        output::print(&output::shell_lines(&words))?;
        return Ok(ExitCode::SUCCESS);
    }
    let outcome = program.run()?;
    if let Some(followed) = followed(&outcome)? {
        followed.remarks().into_iter().for_each(note);
        args.report.deliver(&followed.report, output::print_apart)?;
        followed.expect_most()?;
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
