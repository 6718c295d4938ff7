//! A profile from the memory emulator's report on a program.

use std::process::ExitStatus;

use numalab_record::profile::{
    CannotSee, OtherProcess, PassedOver, Profile, ProfileSource, ProfiledNode, Target,
};
use numalab_record::{MemoryReport, ProgramMemory, RegionAccesses};

use crate::session::of_status;

/// The emulator's reports of the processes of a command.
#[derive(Debug)]
pub struct EmulatedRun {
    pub command: Vec<String>,
    /// Its end.
    pub status: ExitStatus,
    /// The run time, in ns of this machine's time.
    pub watched_ns: u64,
    /// All processes as one program.
    pub main: MemoryReport,
    pub processes: Vec<ProgramMemory>,
    pub nodes: Vec<ProfiledNode>,
    /// Better sources, and why they could not be used.
    pub passed_over: Vec<PassedOver>,
}

impl From<EmulatedRun> for Profile {
    fn from(run: EmulatedRun) -> Self {
        let name = run.command.first().map(|program| file_name(program)).unwrap_or_default();
        let several = run.processes.len() > 1;
        let processes = run.processes.iter().filter(|_| several);
        Self {
            watched_ns: run.watched_ns,
            ended: of_status(run.status),
            left: Vec::new(),
            source: ProfileSource::Emulation { one_in: run.main.sample },
            faults: None,
            cannot_see: vec![CannotSee::ThisMachine],
            passed_over: run.passed_over,
            nodes: run.nodes,
            latency_ns: run.main.machine.latency_ns,
            others: Vec::new(),
            processes: processes.map(|of| process(of, &name)).collect(),
            name,
            program: run.main.program.unwrap_or_default(),
            thread_names: std::collections::BTreeMap::new(),
            target: Target::Command(run.command),
        }
    }
}

fn file_name(program: &str) -> String {
    program.rsplit('/').next().unwrap_or(program).to_owned()
}

/// Returns the figures of one program that a process executed; `name` is the command's.
fn process(program: &ProgramMemory, name: &str) -> OtherProcess {
    let accesses = || program.regions.iter().flat_map(|region| &region.accesses);
    let touches = program.regions.iter().flat_map(|region| &region.first_touches);
    OtherProcess {
        process: program.process,
        name: program.program.as_deref().map_or_else(|| name.to_owned(), file_name),
        busy_ns: program.threads.iter().map(|thread| thread.busy_ns).sum(),
        accesses: accesses().map(RegionAccesses::all).sum(),
        remote: accesses().filter(|by| by.is_remote()).map(RegionAccesses::all).sum(),
        touched_pages: touches.map(|of| of.pages).sum(),
    }
}

#[cfg(test)]
mod tests;
