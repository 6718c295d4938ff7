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

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;
    use std::time::Duration;

    use numalab_workload::{Direction, MetricSpec};

    use super::*;
    use crate::test_study::request;

    fn judged(metric: MetricSpec, place: TrialPlace) -> Judged {
        let request = Request { metric, ..request() };
        Judged::of(&request, place).expect("a workload")
    }

    fn ran(stdout: &str) -> Ran {
        Ran {
            command: "sh".to_owned(),
            status: ExitStatus::from_raw(0),
            stdout: stdout.to_owned(),
            stderr: String::new(),
            dropped_bytes: 0,
            took: Duration::from_secs(9),
            left: Vec::new(),
        }
    }

    #[test]
    fn without_a_pattern_the_time_on_the_machine_is_judged_not_that_of_the_emulation() {
        let judged = judged(MetricSpec::of_time(), TrialPlace::Emulation);
        let read = judged.read(&ran("rate 7\n"), 250_000_000).expect("a time");
        assert_eq!((read.len(), read[0].value), (1, 0.25));
        assert_eq!((read[0].quantity.unit.as_str(), judged.is_printed()), ("s", false));
    }

    #[test]
    fn a_number_that_the_program_prints_is_judged_by_its_last_match() {
        let rate = MetricSpec::of_pattern("rate {x/s}".to_owned(), Direction::HigherIsBetter);
        let judged = judged(rate, TrialPlace::Host);
        let read = judged.read(&ran("rate 7 x/s\nrate 8.5 x/s\n"), 1).expect("a number");
        assert_eq!((read[0].value, judged.is_printed()), (8.5, true));
        let missing = judged.read(&ran("no rate\n"), 1).expect_err("no number").to_string();
        assert!(missing.contains("found \"no rate\""), "{missing}");
    }

    #[test]
    fn a_guest_runs_the_program_of_this_machine_by_its_path() {
        let program = |place| judged(MetricSpec::of_time(), place).spec.command.unwrap();
        let expected = std::path::absolute(on_path("sh").expect("a shell")).unwrap();
        assert_eq!(program(TrialPlace::Guest)[0], expected.to_string_lossy());
        assert_eq!(program(TrialPlace::Guest)[1..], ["-c", "true"]);
        assert_eq!(program(TrialPlace::Host)[0], "sh");
        assert_eq!(findable(&["./no-such".to_owned()], true), ["./no-such"]);
        assert_eq!(findable(&[], true), Vec::<String>::new());
    }
}
