//! Runs the program in QEMU's user mode, on the description of this machine or another.

use std::error::Error;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Instant;

use numalab_guest::program::{EmulatedProgram, ProgramError};
use numalab_host::note;
use numalab_profile::{EmulatedRun, profiled_nodes};
use numalab_record::profile::{Hindrance, PassedOver, Profile};
use numalab_topology::Machine;

use super::ProfileArgs;
use crate::command::emulate;
use crate::failure::Failure;

pub(super) struct Prepared {
    program: EmulatedProgram,
    machine: Machine,
}

impl Prepared {
    /// Returns QEMU's command line.
    pub fn command_line(&self) -> Result<Vec<String>, Failure> {
        Ok(self.program.command_line(Path::new("DIRECTORY"))?)
    }
}

/// Returns the program with its machine, or the reason why it cannot be emulated.
pub(super) fn prepare(args: &ProfileArgs) -> Result<Prepared, Hindrance> {
    if args.pid.is_some() {
        return Err(Hindrance::RunsAlready);
    }
    if args.for_.is_some() {
        return Err(Hindrance::HasToEnd);
    }
    let no = |reason: String| Hindrance::NoEmulation { reason };
    let prepared = prepared(args).map_err(|error| no(error.to_string()))?;
    match prepared.program.command_line(Path::new("DIRECTORY")) {
        // Starting the program reports this error better.
        Ok(_) | Err(ProgramError::NotFound(_) | ProgramError::NotExecutable(_)) => Ok(prepared),
        Err(error) => Err(no(error.to_string())),
    }
}

fn prepared(args: &ProfileArgs) -> Result<Prepared, Box<dyn Error>> {
    let described = args.machine().request().describe()?;
    let memory = described.followed_memory(args.costs.given())?;
    let threads = args.threads.cpus(&described.machine);
    let threads = threads.map_err(|error| format!("--threads: {error}"))?;
    let program = EmulatedProgram::new(memory, threads, args.command.clone())?;
    Ok(Prepared { program, machine: described.machine })
}

/// Runs the program to its end; returns its status in place of a profile if a signal ended it before
/// the emulator reported.
pub(super) fn run(
    prepared: Prepared,
    passed_over: Vec<PassedOver>,
    is_our_choice: bool,
) -> Result<Result<Profile, ExitStatus>, Failure> {
    if is_our_choice {
        note(
            "the program runs in QEMU's user mode, 10 to 100 times slower; --source faults or \
             referenced runs it natively",
        );
    }
    let begun = Instant::now();
    let outcome = prepared.program.run()?;
    let watched_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let Some(followed) = emulate::followed(&outcome)? else { return Ok(Err(outcome.status)) };
    followed.remarks().into_iter().for_each(note);
    followed.expect_most()?;
    Ok(Ok(Profile::from(EmulatedRun {
        command: prepared.program.command,
        status: outcome.status,
        watched_ns,
        main: followed.report,
        processes: followed.processes,
        nodes: profiled_nodes(&prepared.machine),
        passed_over,
    })))
}
