//! The surroundings of a workload: a scratch directory and a running service.

use std::env;
use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use numalab_host::{CommandError, Interrupt, Ran, TemporaryDirectory, run_command, users_program};
use numalab_study::BackendError;
use numalab_workload::Workload;

/// The time limit of a service, which runs until it is ended.
const FOR_EVER: Duration = Duration::from_secs(30 * 86_400);
/// The time limit of one readiness check.
const LOOK: Duration = Duration::from_secs(10);
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// An empty directory, if the workload needs one, that is removed when this value is dropped.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    directory: Option<TemporaryDirectory>,
    numalab: String,
}

impl Scratch {
    /// Creates the directory if the workload needs it, or `is_needed` is set.
    pub(super) fn make(workload: &Workload, is_needed: bool) -> Result<Self, BackendError> {
        let numalab = env::current_exe().unwrap_or_default().to_string_lossy().into_owned();
        if !workload.needs_scratch() && !is_needed {
            return Ok(Self { directory: None, numalab });
        }
        // The directory's path is short because a socket's path has at most 107 bytes.
        let directory = TemporaryDirectory::create();
        let directory = directory.map_err(|error| {
            BackendError::failed(
                format!("a temporary directory for workload {}", workload.name),
                error,
            )
        })?;
        Ok(Self { directory: Some(directory), numalab })
    }

    /// Returns a command line with the paths of the directory and of this program filled in.
    pub(super) fn filled_in(&self, words: &[String]) -> Vec<String> {
        Workload::filled_in(words, &self.file(""), &self.numalab)
    }

    /// Returns the path of a file in the directory, or of the directory itself for an empty name.
    pub(super) fn file(&self, name: &str) -> String {
        let directory = self.directory.as_ref().map(|directory| directory.path().to_string_lossy());
        let directory = directory.unwrap_or_default().into_owned();
        if name.is_empty() { directory } else { format!("{directory}/{name}") }
    }
}

/// A running service. Dropping it ends the service and waits for its exit.
pub(super) struct Running {
    stop: Interrupt,
    thread: Option<JoinHandle<Result<Ran, CommandError>>>,
}

impl Running {
    /// Starts the workload's service and waits until it is ready; returns `None` if it has no
    /// service.
    pub(super) fn start(
        workload: &Workload,
        scratch: &Scratch,
        interrupt: &Interrupt,
    ) -> Result<Option<Self>, BackendError> {
        let Some(service) = &workload.service else { return Ok(None) };
        let stop = Interrupt::never();
        let (command, stopping) = (words(&scratch.filled_in(&service.command)), stop.clone());
        let thread = thread::spawn(move || run_command(command, FOR_EVER, &stopping));
        let mut running = Self { stop, thread: Some(thread) };
        let begun = Instant::now();
        let ready = scratch.filled_in(&service.ready);
        loop {
            if interrupt.requested() {
                return Err(BackendError::Interrupted);
            }
            if is_up(&ready, interrupt) {
                return Ok(Some(running));
            }
            if running.has_ended() {
                return Err(running.ended_early(workload));
            }
            if begun.elapsed() > Duration::from_secs(service.ready_within_s) {
                return Err(BackendError::failed(
                    format!("workload {}: {}", workload.name, service.command.join(" ")),
                    format!("not ready after {} s", service.ready_within_s),
                ));
            }
            thread::sleep(BETWEEN_LOOKS);
        }
    }

    fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn ended_early(&mut self, workload: &Workload) -> BackendError {
        let doing = format!("service of workload {}", workload.name);
        let reason = match self.thread.take().and_then(|thread| thread.join().ok()) {
            Some(Ok(ran)) => format!("{}: {}", ran.status, (ran.stderr + &ran.stdout).trim()),
            Some(Err(CommandError::NotFound { program })) => {
                return BackendError::missing(workload, &program);
            }
            Some(Err(error)) => error.to_string(),
            None => "it ended".to_owned(),
        };
        BackendError::failed(doing, reason)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.request();
        if let Some(thread) = self.thread.take() {
            // The exit status of a service that was asked to end does not matter.
            let _ = thread.join();
        }
    }
}

fn words(words: &[String]) -> Command {
    let mut words = words.iter();
    users_program(words.next().map_or("", String::as_str), words)
}

fn is_up(ready: &[String], interrupt: &Interrupt) -> bool {
    run_command(words(ready), LOOK, interrupt).is_ok_and(|ran| ran.status.success())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use numalab_workload::{Service, WorkloadSpec};

    fn with_service(command: &[&str], ready: &[&str]) -> Workload {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let service = Service { command: words(command), ready: words(ready), ready_within_s: 60 };
        let workload = WorkloadSpec::of_tool("dbench").resolve().unwrap();
        Workload { service: Some(service), ..workload }
    }

    fn start(workload: &Workload) -> Result<Option<Running>, BackendError> {
        Running::start(workload, &Scratch::default(), &Interrupt::never())
    }

    #[test]
    fn a_service_is_up_before_its_workload_and_ended_after_it() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pid");
        let script = format!("echo $$ > {}; exec sleep 600", file.display());
        let path = file.to_string_lossy();
        let workload = with_service(&["sh", "-c", &script], &["test", "-s", &path]);
        let running = start(&workload).unwrap().expect("a service");
        let pid = fs::read_to_string(&file).unwrap();
        assert!(PathBuf::from(format!("/proc/{}", pid.trim())).exists());
        drop(running);
        assert!(!PathBuf::from(format!("/proc/{}", pid.trim())).exists());
    }

    #[test]
    fn a_service_that_ends_or_is_missing_is_reported() {
        let ended = with_service(&["sh", "-c", "echo no room >&2; exit 3"], &["false"]);
        let error = start(&ended).map(drop).unwrap_err();
        assert!(error.to_string().contains("no room"), "{error}");
        let absent = with_service(&["numalab-no-such-program"], &["false"]);
        let error = start(&absent).map(drop).unwrap_err();
        assert!(matches!(error, BackendError::Lacking { .. }), "{error}");
    }

    #[test]
    fn an_interrupt_ends_the_waiting() {
        let workload = with_service(&["sleep", "600"], &["false"]);
        let interrupt = Interrupt::never();
        interrupt.request();
        let error = Running::start(&workload, &Scratch::default(), &interrupt).map(drop);
        assert_eq!(error.unwrap_err(), BackendError::Interrupted);
    }
}
