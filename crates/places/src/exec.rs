//! Workloads run as commands of this machine.

mod files;
mod pages;
mod reading;
mod service;

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use numalab_host::{CommandError, Input, Interrupt, Ran, users_program};
use numalab_record::study::{Reading, Setting};
use numalab_record::tiering::TierLook;
use numalab_study::{BackendError, SampleRequest, Scope};
use numalab_workload::{
    Ending, Finished, KernelNeed, Tool, Workload, perf_stat_counters, tier_looks,
};

use super::facts;
use super::placement::PlacedCommand;
pub(crate) use files::FilesRead;
pub(crate) use pages::{PagesSeen, PagesWatch};
pub use reading::{FilesSeen, reading_from_nodes};
use service::{Running, Scratch};

/// The events that `perf stat` counts around a workload, if the study asks for them.
const EVENTS: &str = "cpu-migrations,context-switches";
const COUNTS: &str = "perf-stat.csv";

/// The result of a workload's run.
pub(crate) struct Executed {
    pub(crate) readings: Vec<Reading>,
    /// The location of the workload's pages over time, if it probes memory tiers.
    pub(crate) looks: Vec<TierLook>,
    /// The counts of `perf stat`, if it was used.
    pub(crate) counters: BTreeMap<String, f64>,
    /// A fingerprint of the workload's standard output.
    pub(crate) output: String,
}

/// Use of `perf stat` around workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counting {
    Scheduler,
    /// Workloads run without it.
    Off,
}

/// Runs a workload once under its placement, with its service if it has one, and reads its output.
pub(crate) fn run(
    request: &SampleRequest<'_>,
    placement: &PlacedCommand,
    counting: Counting,
    interrupt: &Interrupt,
) -> Result<Executed, BackendError> {
    let workload = request.workload;
    let scratch = Scratch::make(workload, counting == Counting::Scheduler)?;
    let limit = Duration::from_secs(workload.timeout_s);
    let ran = placement.within(|| {
        let _service = Running::start(workload, &scratch, interrupt)?;
        let command = || command(request, &scratch, counting);
        let input = workload.stdin.as_deref().map_or(Input::Empty, Input::File);
        placement.run(command, (input, limit), interrupt, |error| failed(workload, error))
    })?;
    // An error shows the command as it ran, with the settings filled in.
    let settings = &request.treatment.settings;
    let command = workload.command.iter().map(|word| filled(word, settings)).collect();
    let readings = read(&Workload { command, ..workload.clone() }, &ran)?;
    let counters = match counting {
        Counting::Off => BTreeMap::new(),
        Counting::Scheduler => scheduler_counters(&scratch),
    };
    let output = facts::fingerprint(ran.stdout.as_bytes());
    Ok(Executed { readings, looks: tier_looks(&ran.stdout), counters, output })
}

/// Reads the output of a finished workload. A workload that leaves processes running has not
/// finished.
pub(crate) fn read(workload: &Workload, ran: &Ran) -> Result<Vec<Reading>, BackendError> {
    if let Some(left) = ran.left.first() {
        return Err(BackendError::of_workload(
            workload,
            format!(
                "`{}` left {left} running, now terminated: expected a program that completes its \
                 work before it exits",
                workload.command.first().map_or("", String::as_str)
            ),
        ));
    }
    let finished = Finished {
        ending: ending(ran.status),
        stdout: &ran.stdout,
        stderr: &ran.stderr,
        elapsed_s: ran.took.as_secs_f64(),
    };
    workload.read(&finished).map_err(|error| BackendError::of_workload(workload, error))
}

fn command(request: &SampleRequest<'_>, scratch: &Scratch, counting: Counting) -> Command {
    let settings = &request.treatment.settings;
    let words: Vec<String> =
        request.workload.command.iter().map(|word| filled(word, settings)).collect();
    let words = scratch.filled_in(&words);
    let counts = scratch.file(COUNTS);
    let mut around = Vec::new();
    if counting == Counting::Scheduler {
        let perf = ["perf", "stat", "-x", ",", "-o", &counts, "-e", EVENTS, "--"];
        around.extend(perf.map(str::to_owned));
    }
    let mut words = around.into_iter().chain(words);
    let mut command = users_program(words.next().unwrap_or_default(), words);
    command.env("NUMALAB_SEED", request.seed.to_string());
    for (name, value) in settings {
        command.env(variable(name), value.to_string());
    }
    command
}

pub(crate) fn variable(name: &str) -> String {
    let name = name.to_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    format!("NUMALAB_{name}")
}

/// Returns a word of a command with the settings filled in.
pub(crate) fn filled(word: &str, settings: &BTreeMap<String, Setting>) -> String {
    let mut text = word.to_owned();
    for (name, value) in settings {
        text = text.replace(&format!("{{{name}}}"), &value.to_string());
    }
    text
}

/// Returns the workloads with the tools that they need under any treatment: a level may be the
/// program itself.
pub(crate) fn workloads(scope: &Scope<'_>) -> Vec<Workload> {
    let with_tools = |workload: &Workload| {
        let mut tools: Vec<Tool> = Vec::new();
        for tool in &workload.tools {
            for treatment in scope.treatments {
                let program = filled(&tool.program, &treatment.settings);
                let tool = Tool { program, ..tool.clone() };
                if !tools.contains(&tool) {
                    tools.push(tool);
                }
            }
        }
        Workload { tools, ..workload.clone() }
    };
    scope.workloads.iter().map(with_tools).collect()
}

/// Returns the kernel resources that a workload needs under these settings.
pub(crate) fn needs(workload: &Workload, settings: &BTreeMap<String, Setting>) -> Vec<KernelNeed> {
    let words: Vec<String> = workload.command.iter().map(|word| filled(word, settings)).collect();
    numalab_workload::kernel_needs(&words)
}

fn scheduler_counters(scratch: &Scratch) -> BTreeMap<String, f64> {
    // A machine that cannot count these events has no such counters, which the report shows.
    let text = std::fs::read_to_string(scratch.file(COUNTS)).unwrap_or_default();
    let counters = perf_stat_counters(&text).unwrap_or_default();
    counters.into_iter().filter_map(|(name, count)| Some((name, count?))).collect()
}

fn ending(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exited(code),
        (None, signal) => Ending::Signalled(signal.unwrap_or_default()),
    }
}

pub(crate) fn failed(workload: &Workload, error: &CommandError) -> BackendError {
    match error {
        CommandError::Interrupted { .. } => BackendError::Interrupted,
        CommandError::NotFound { program } => BackendError::missing(workload, program),
        error => BackendError::of_workload(workload, error),
    }
}

#[cfg(test)]
mod tests;
