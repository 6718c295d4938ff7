//! What trials judge by: the program's time on the machine, or a number that it prints.

use std::path::PathBuf;

use numalab_host::{Ran, on_path};
use numalab_record::study::Reading;
use numalab_workload::{
    Ending, Expression, Finished, MetricSpec, OutputError, Pattern, Workload, WorkloadSpec,
};

use super::subject::LONGEST_RUN;
use crate::args::{AdviseArgs, TryOn};
use crate::failure::Failure;

/// What is judged, as the workload of a study.
#[derive(Clone)]
pub(super) struct Judged {
    /// As it is written in a study.
    pub spec: WorkloadSpec,
    workload: Workload,
}

impl Judged {
    /// The command with the one metric that was asked for.
    pub(super) fn of(args: &AdviseArgs, stdin: Option<PathBuf>) -> Result<Self, Failure> {
        if let Some(pattern) = &args.metric {
            let checked = Pattern::parse(pattern);
            checked.map_err(|error| Failure::bad_input(format!("--metric: {error}")))?;
        }
        if let Some(regex) = &args.metric_regex {
            let checked = Expression::parse(regex);
            checked.map_err(|error| Failure::bad_input(format!("--metric-regex: {error}")))?;
        }
        let metric = match &args.metric_regex {
            Some(regex) => MetricSpec::of_regex(regex.clone(), args.better),
            None => MetricSpec::of_command(args.metric.clone(), args.better),
        };
        let spec = WorkloadSpec {
            name: Some("program".to_owned()),
            command: Some(findable(&args.command, args.try_on == Some(TryOn::Guest))),
            stdin,
            timeout_s: Some(LONGEST_RUN.as_secs()),
            metric: vec![metric],
            ..WorkloadSpec::default()
        };
        let workload = spec.resolve().map_err(Failure::bad_input)?;
        Ok(Self { spec, workload })
    }

    /// What a run gave that took so long on its machine.
    pub(super) fn read(&self, ran: &Ran, elapsed_ns: u64) -> Result<Vec<Reading>, OutputError> {
        self.workload.read(&Finished {
            ending: Ending::Exited(0),
            stdout: &ran.stdout,
            stderr: &ran.stderr,
            elapsed_s: elapsed_ns as f64 / 1e9,
        })
    }

    /// Whether it is a number that the program prints.
    pub(super) fn is_printed(&self) -> bool {
        self.spec.metric.iter().any(|metric| !metric.exit_time)
    }
}

/// The command with its program by a path that holds in a guest too: a guest has programs of this
/// machine where they are here, but no working directory of ours, and others under the same names.
fn findable(command: &[String], in_guest: bool) -> Vec<String> {
    let mut words = command.to_vec();
    let path = words.first().filter(|_| in_guest).and_then(|name| on_path(name));
    let path = path.and_then(|path| std::path::absolute(path).ok());
    if let (Some(path), Some(name)) = (path, words.first_mut()) {
        *name = path.to_string_lossy().into_owned();
    }
    words
}
