//! Runs the program in QEMU's user mode, on the description of this machine or another.

use std::path::Path;
use std::time::Instant;

use numalab_guest::emulator::PLUGIN;
use numalab_guest::program::{EmulatedProgram, Followed, ProgramError};
use numalab_host::note;
use numalab_profile::EmulatedRun;
use numalab_record::profile::{Hindrance, PassedOver, Profile, ProfiledNode};
use numalab_topology::Machine;

use crate::args::ProfileArgs;
use crate::command::emulate;
use crate::failure::Failure;

/// A program that can be emulated.
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
    let plugin = PLUGIN.find().map_err(|error| no(error.to_string()))?;
    let described = args.machine().request().describe().map_err(|error| no(error.to_string()))?;
    let prepared = || -> Result<Prepared, Failure> {
        let program = EmulatedProgram::new(
            plugin,
            described.followed_memory(args.costs.given())?,
            emulate::threads(&args.threads, &described.machine)?,
            args.command.clone(),
        );
        Ok(Prepared { program, machine: described.machine.clone() })
    };
    let prepared = prepared().map_err(|error| no(error.message().to_owned()))?;
    match prepared.program.command_line(Path::new("DIRECTORY")) {
        // A missing program is reported when it is started, in better words.
        Ok(_) | Err(ProgramError::NotFound(_)) => Ok(prepared),
        Err(error) => Err(no(error.to_string())),
    }
}

/// Runs the program to its end.
pub(super) fn run(
    prepared: Prepared,
    passed_over: Vec<PassedOver>,
    is_our_choice: bool,
) -> Result<Profile, Failure> {
    if is_our_choice {
        note(
            "the program runs in QEMU's user mode, 10 to 100 times slower; --source faults or \
             referenced runs it natively",
        );
    }
    let begun = Instant::now();
    let outcome = prepared.program.run()?;
    let watched_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let followed = Followed::read(&outcome.reports)?;
    followed.remarks().into_iter().for_each(note);
    emulate::has_most(&followed)?;
    let nodes = prepared.machine.nodes.iter();
    let nodes = nodes.map(|node| ProfiledNode { node: node.id, cpus: node.cpus.clone() });
    Ok(Profile::from(EmulatedRun {
        command: prepared.program.command,
        status: outcome.status,
        watched_ns,
        main: followed.report,
        processes: followed.processes,
        nodes: nodes.collect(),
        passed_over,
    }))
}
