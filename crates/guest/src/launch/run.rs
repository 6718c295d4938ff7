//! Runs a job in a Linux guest.

use std::time::Duration;

use super::arguments::System;
use super::failure::{Evidence, GuestError, diagnose};
use super::guest::Launch;
use super::host_memory::HostMemory;
use super::running::{Running, Sockets};
use super::runtime::Runtime;
use super::session::{Session, SessionError, Sink, Task, prepare_results};
use super::watch::{Phase, StopCheck, Watch};
use crate::qmp::{MemoryProof, PinReport, QmpClient, prove_memory};
use numalab_guest_agent::protocol::Exit;

/// Time within which the guest must accept the data sent to it.
const SEND_LIMIT: Duration = Duration::from_secs(60);
/// Time to wait for QEMU's end after the channel has closed, which gives the cause.
const LAST_WORDS: Duration = Duration::from_secs(3);

#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The exit status of the command.
    pub exit: Exit,
    /// Problems in the guest, such as a missing file to collect, and reasons for restarts.
    pub complaints: Vec<String>,
    pub files: Vec<std::path::PathBuf>,
    /// The release of the guest's kernel.
    pub kernel: String,
    /// The host cpus of the vCPUs at the end, if they were pinned.
    pub pins: Option<PinReport>,
    /// The placement of guest memory at the end, if memory was bound or cpus were pinned.
    pub memory: Option<Vec<MemoryProof>>,
    /// The memory emulator's report (JSON, `numalab-emulator/1`), if there was one.
    pub memory_report: Option<String>,
}

impl Launch {
    /// Boots the guest, runs the job in it, and ends it.
    ///
    /// # Errors
    /// [`GuestError`]; a command that fails in the guest is not an error but an [`Outcome`].
    pub fn run(
        &self,
        runtime: &Runtime,
        task: &Task,
        sink: &mut dyn Sink,
        asked: StopCheck,
    ) -> Result<Outcome, GuestError> {
        let channel_failed =
            |error| GuestError::Channel { error, console: super::ConsoleTail::default() };
        // Before booting, so that a directory that cannot be created does not cost a boot.
        prepare_results(task).map_err(channel_failed)?;
        let mut failed_starts = Vec::new();
        loop {
            match self.run_once(runtime, task, &mut *sink, asked) {
                // Only failures before the command began are retried, and each is reported with the
                // result.
                Err(error) if failed_starts.len() < error.fresh_starts() => {
                    failed_starts.push(started_anew(&error));
                }
                Err(error) => return Err(error),
                Ok(mut outcome) => {
                    outcome.complaints.splice(0..0, failed_starts);
                    return Ok(outcome);
                }
            }
        }
    }

    fn run_once(
        &self,
        runtime: &Runtime,
        task: &Task,
        sink: &mut dyn Sink,
        asked: StopCheck,
    ) -> Result<Outcome, GuestError> {
        let terminal = task.job.terminal;
        let system = System::Linux { terminal };
        let (mut running, sockets) =
            Running::start(self, runtime, system, &task.job.command, None)?;
        let mut monitor = running.monitor(&sockets, asked)?;
        let pins = running.pin(self, &mut monitor)?;
        running.go(&mut monitor)?;
        // The monitor outlives the conversation, because its `quit` makes the plugins write their
        // reports.
        let mut conversation = Conversation { launch: self, task, asked, monitor, pins };
        let outcome = conversation.hold(&running, &sockets, sink);
        let mut outcome = outcome.map_err(|trouble| trouble.explained(&mut running))?;
        running.quit(&mut conversation.monitor);
        outcome.memory_report = running.memory_report();
        judged(&running, outcome)
    }
}

/// Returns the complaint about a failed start that a successful one followed.
fn started_anew(error: &GuestError) -> String {
    let error = error.to_string();
    format!("restarted: {}", error.lines().next().unwrap_or_default())
}

/// The conversation with a running guest, from its first message to its end marker.
struct Conversation<'a> {
    launch: &'a Launch,
    task: &'a Task,
    asked: StopCheck<'a>,
    monitor: QmpClient,
    pins: Option<PinReport>,
}

/// A failure while talking to a guest.
enum Trouble {
    /// The result channel failed; QEMU's exit status and the console show the cause.
    Channel { error: SessionError, greeted: bool },
    /// Something other than the channel failed.
    Other(GuestError),
}

impl Conversation<'_> {
    fn hold(
        &mut self,
        running: &Running,
        sockets: &Sockets,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, Trouble> {
        let failed = |greeted| move |error| Trouble::Channel { error, greeted };
        let limits = self.launch.guest.limits;
        let watch = Watch::new(self.asked, &running.console, limits.boot);
        let stream = running.channel(sockets, &watch).map_err(Trouble::Other)?;
        let writer = stream.writer(SEND_LIMIT).map_err(GuestError::Start);
        let mut session = Session::new(stream, writer.map_err(Trouble::Other)?);
        let hello = session.hello().map_err(failed(false))?;
        // The command has its own limit, so that a slow boot does not shorten its time.
        watch.begin(Phase::Run, limits.run);
        session.begin(self.task, self.launch.charges_commands()).map_err(failed(true))?;
        let answer = session.follow(self.task, sink).map_err(failed(true))?;
        // The guest waits while the channel is open, so its placement can be read now.
        let (pins, memory) = self.placement(running).map_err(Trouble::Other)?;
        Ok(Outcome {
            exit: answer.exit,
            complaints: answer.complaints,
            files: answer.files,
            kernel: hello.kernel,
            pins,
            memory,
            memory_report: None,
        })
    }

    /// Returns the placement of cpus and memory, if either was requested.
    fn placement(
        &mut self,
        running: &Running,
    ) -> Result<(Option<PinReport>, Option<Vec<MemoryProof>>), GuestError> {
        let pins = self.pins.take().map(PinReport::observed).transpose()?;
        if pins.is_none() && self.launch.guest.memory == HostMemory::default() {
            return Ok((None, None));
        }
        let memory = prove_memory(&mut self.monitor, running.process.pid());
        let memory =
            memory.map_err(|error| GuestError::Monitor { error, errors: running.errors() })?;
        Ok((pins, Some(memory)))
    }
}

impl Trouble {
    fn explained(self, running: &mut Running) -> GuestError {
        let (error, greeted) = match self {
            Self::Other(error) => return error,
            Self::Channel { error, greeted } => (error, greeted),
        };
        // The channel closes before QEMU has ended, but its status is needed for the diagnosis.
        let status = running.ended(LAST_WORDS);
        let errors = running.errors();
        let evidence = Evidence { console: &running.console, status, errors, greeted };
        diagnose(error, evidence)
    }
}

/// If the guest's kernel ran out of memory, turns a failed command into an error, and adds a
/// complaint to a successful one.
fn judged(running: &Running, mut outcome: Outcome) -> Result<Outcome, GuestError> {
    let Some(line) = running.console.out_of_memory() else {
        return Ok(outcome);
    };
    // The command succeeded although a process was killed, so its result stays valid.
    if outcome.exit.success() {
        outcome.complaints.push(format!("the guest ran out of memory: {line}"));
        return Ok(outcome);
    }
    let console = running.console.tail();
    Err(GuestError::OutOfMemory { line, console })
}
