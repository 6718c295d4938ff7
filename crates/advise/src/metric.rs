//! The metric of trials: the program's time on the machine, or a number that it prints.

use numalab_host::{Ran, on_path};
use numalab_record::study::Reading;
use numalab_results::advice::TrialPlace;
use numalab_workload::{Ending, Finished, OutputError, SpecError, Workload, WorkloadSpec};

use crate::request::Request;
use crate::subject::LONGEST_RUN;

/// The judged metric, as the workload of a study.
#[derive(Clone)]
pub(super) struct Judged {
    /// The metric as a study's workload defines it.
    pub spec: WorkloadSpec,
    workload: Workload,
}

impl Judged {
    /// Returns the command with the one requested metric.
    pub(super) fn of(request: &Request, place: TrialPlace) -> Result<Self, SpecError> {
        let spec = WorkloadSpec {
            name: Some("program".to_owned()),
            command: Some(findable(&request.command, place == TrialPlace::Guest)),
            stdin: request.stdin.clone(),
            timeout_s: Some(LONGEST_RUN.as_secs()),
            metric: vec![request.metric.clone()],
            ..WorkloadSpec::default()
        };
        let workload = spec.resolve()?;
        Ok(Self { spec, workload })
    }

    /// Reads the metric of a run that took `elapsed_ns` on its machine.
    pub(super) fn read(&self, ran: &Ran, elapsed_ns: u64) -> Result<Vec<Reading>, OutputError> {
        self.workload.read(&Finished {
            ending: Ending::Exited(0),
            stdout: &ran.stdout,
            stderr: &ran.stderr,
            elapsed_s: elapsed_ns as f64 / 1e9,
        })
    }

    /// Returns true if the metric is a number that the program prints.
    pub(super) fn is_printed(&self) -> bool {
        self.spec.metric.iter().any(|metric| !metric.exit_time)
    }
}

/// Returns the command with a path to its program that is also valid in a guest. A guest has this
/// machine's programs at the same paths, but another working directory, and may have different
/// programs of the same names.
fn findable(command: &[String], in_guest: bool) -> Vec<String> {
    let mut words = command.to_vec();
    let path = words.first().filter(|_| in_guest).and_then(|name| on_path(name));
    let path = path.and_then(|path| std::path::absolute(path).ok());
    if let (Some(path), Some(name)) = (path, words.first_mut()) {
        *name = path.to_string_lossy().into_owned();
    }
    words
}
