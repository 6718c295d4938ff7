//! Workloads run as commands of this machine.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use numalab_host::{CommandError, Interrupt, Ran, run_command};
use numalab_record::study::{Better, Quantity, Reading, Setting};
use numalab_workload::{Ending, Finished, Workload};

use crate::world::{Order, WorldError};

/// Runs a workload once, and reads what it printed.
pub(crate) fn run(order: &Order<'_>, interrupt: &Interrupt) -> Result<Vec<Reading>, WorldError> {
    let workload = order.workload;
    let limit = Duration::from_secs(workload.timeout_s);
    let ran = run_command(command(order), limit, interrupt);
    let ran = ran.map_err(|error| failed(workload, &error))?;
    read(workload, &ran)
}

/// What a workload that has ended tells.
pub(crate) fn read(workload: &Workload, ran: &Ran) -> Result<Vec<Reading>, WorldError> {
    let finished = Finished {
        ending: ending(ran.status),
        stdout: &ran.stdout,
        stderr: &ran.stderr,
        elapsed_s: ran.took.as_secs_f64(),
    };
    let readings = workload.read(&finished).map_err(|error| WorldError::Failed {
        doing: format!("workload {}", workload.name),
        reason: error.to_string(),
    })?;
    Ok(readings.into_iter().map(reading).collect())
}

/// A reading as a study's journal has it.
pub(crate) fn reading(reading: numalab_workload::Reading) -> Reading {
    let metric = reading.metric;
    let better = match metric.better {
        numalab_workload::Better::Lower => Better::Lower,
        numalab_workload::Better::Higher => Better::Higher,
    };
    let quantity = Quantity { metric: metric.name, unit: metric.unit, better };
    Reading { quantity, value: reading.value }
}

fn command(order: &Order<'_>) -> Command {
    let settings = &order.treatment.settings;
    let mut words = order.workload.command.iter().map(|word| filled(word, settings));
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).env("NUMALAB_SEED", order.seed.to_string());
    for (name, value) in settings {
        let name = name.to_uppercase().replace(['-', '.'], "_");
        command.env(format!("NUMALAB_{name}"), value.to_string());
    }
    command
}

/// A word of a command with the settings in their places.
pub(crate) fn filled(word: &str, settings: &BTreeMap<String, Setting>) -> String {
    let mut text = word.to_owned();
    for (name, value) in settings {
        text = text.replace(&format!("{{{name}}}"), &value.to_string());
    }
    text
}

fn ending(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exited(code),
        (None, signal) => Ending::Signalled(signal.unwrap_or_default()),
    }
}

fn failed(workload: &Workload, error: &CommandError) -> WorldError {
    match error {
        CommandError::Interrupted { .. } => WorldError::Interrupted,
        CommandError::NotFound { program } => missing(workload, program),
        error => WorldError::Failed {
            doing: format!("workload {}", workload.name),
            reason: error.to_string(),
        },
    }
}

/// That a program is not there, with what mends it.
pub(crate) fn missing(workload: &Workload, program: &str) -> WorldError {
    let tool = workload.tools.iter().find(|tool| tool.program == program);
    WorldError::Lacking {
        what: format!("workload {}: `{program}` is not there", workload.name),
        remedy: tool.map_or_else(|| "expected a program".to_owned(), |tool| tool.remedy()),
    }
}
