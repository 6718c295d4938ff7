//! Runs a job in a Linux guest.

use std::time::{Duration, Instant};

use super::arguments::System;
use super::failure::{Evidence, GuestError, diagnose};
use super::guest::Launch;
use super::host_memory::HostMemory;
use super::running::{Running, Sockets};
use super::runtime::Runtime;
use super::session::{Answer, Session, SessionError, Sink, Task, prepare_results};
use super::watch::{Asked, Phase, Watch};
use crate::protocol::{Exit, Hello, Stream};
use crate::qmp::{MemoryProof, PinReport, QmpClient, prove_memory};

/// The guest takes what it is sent within this time.
const SEND_LIMIT: Duration = Duration::from_secs(60);
/// After the channel has closed, QEMU's end tells why.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// What came of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How the command ended.
    pub exit: Exit,
    /// What the guest could not do, such as a file to collect that was not there.
    pub complaints: Vec<String>,
    /// Files that came back.
    pub files: Vec<std::path::PathBuf>,
    /// The release of the guest's kernel.
    pub kernel: String,
    /// How long it took.
    pub times: Times,
    /// Where the virtual cpus were at the end, if they were to be anywhere.
    pub pins: Option<PinReport>,
    /// Where guest memory lay at the end, if it was to be anywhere or cpus were pinned.
    pub memory: Option<Vec<MemoryProof>>,
}

/// How long it took, from the start of QEMU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Until process 1 spoke.
    pub boot: Duration,
    /// Until the command's first output, if it gave any.
    pub first_output: Option<Duration>,
    /// Until the end.
    pub total: Duration,
}

/// Passes output on and notes when the first came.
struct Timed<'a> {
    sink: &'a mut dyn Sink,
    started: Instant,
    first: Option<Duration>,
}

impl Sink for Timed<'_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        self.first.get_or_insert_with(|| self.started.elapsed());
        self.sink.output(stream, bytes);
    }
}

impl Launch {
    /// Boots the guest, does the job in it, and ends it.
    ///
    /// # Errors
    /// [`GuestError`]; a command that fails in the guest is no error but an
    /// [`Outcome`].
    pub fn run(
        &self,
        runtime: &Runtime,
        task: &Task,
        sink: &mut dyn Sink,
        asked: Asked,
    ) -> Result<Outcome, GuestError> {
        let channel_failed = |error| GuestError::Channel {
            error,
            console: super::ConsoleTail::default(),
        };
        prepare_results(task).map_err(channel_failed)?;
        let started = Instant::now();
        let terminal = task.job.terminal;
        let system = System::Linux { terminal };
        let (mut running, sockets) =
            Running::start(self, runtime, system, &task.job.command, None)?;
        let mut monitor = running.monitor(&sockets, asked)?;
        let pins = running.pin(self, &mut monitor)?;
        running.go(&mut monitor)?;
        let mut timed = Timed {
            sink,
            started,
            first: None,
        };
        let (hello, boot, answer) =
            self.converse(&mut running, &sockets, task, &mut timed, asked)?;
        let pins = pins.map(|report| report.observed()).transpose()?;
        let memory = self.proof(&running, &mut monitor)?;
        running.quit(&mut monitor);
        let first_output = timed.first;
        let outcome = Outcome {
            exit: answer.exit,
            complaints: answer.complaints,
            files: answer.files,
            kernel: hello.kernel,
            times: Times {
                boot,
                first_output,
                total: started.elapsed(),
            },
            pins,
            memory,
        };
        judged(&running, outcome)
    }

    fn converse(
        &self,
        running: &mut Running,
        sockets: &Sockets,
        task: &Task,
        sink: &mut Timed,
        asked: Asked,
    ) -> Result<(Hello, Duration, Answer), GuestError> {
        let mut greeted = None;
        let result = {
            let watch = Watch::new(asked, &running.console, self.guest.limits.boot);
            let stream = running.channel(sockets, &watch)?;
            let writer = stream.writer(SEND_LIMIT).map_err(GuestError::Start)?;
            let mut session = Session::new(stream, writer);
            let mut all = || -> Result<Answer, SessionError> {
                let hello = session.hello()?;
                greeted = Some((hello, sink.started.elapsed()));
                watch.begin(Phase::Run, self.guest.limits.run);
                session.begin(task)?;
                session.follow(task, sink)
            };
            all()
        };
        match (result, greeted) {
            (Ok(answer), Some((hello, boot))) => Ok((hello, boot, answer)),
            (Err(error), greeted) => Err(failure(running, error, greeted.is_some())),
            (Ok(_), None) => Err(GuestError::Silent {
                console: running.console.tail(),
            }),
        }
    }

    /// Where guest memory lies, if anybody wanted it somewhere.
    fn proof(
        &self,
        running: &Running,
        monitor: &mut QmpClient,
    ) -> Result<Option<Vec<MemoryProof>>, GuestError> {
        if self.guest.pins.is_none() && self.guest.memory == HostMemory::default() {
            return Ok(None);
        }
        let proof = prove_memory(monitor, running.process.pid());
        proof.map(Some).map_err(|error| GuestError::Monitor {
            error,
            errors: running.errors(),
        })
    }
}

/// A failure after the kernel ran out of memory is no result; a success is one,
/// with a remark.
fn judged(running: &Running, mut outcome: Outcome) -> Result<Outcome, GuestError> {
    let Some(line) = running.console.out_of_memory() else {
        return Ok(outcome);
    };
    if outcome.exit.success() {
        outcome
            .complaints
            .push(format!("the guest ran out of memory: {line}"));
        return Ok(outcome);
    }
    let console = running.console.tail();
    Err(GuestError::OutOfMemory { line, console })
}

/// Finds out what happened to the guest.
fn failure(running: &mut Running, error: SessionError, greeted: bool) -> GuestError {
    let status = running.ended(LAST_WORDS);
    let errors = running.errors();
    let evidence = Evidence {
        console: &running.console,
        status,
        errors,
        greeted,
    };
    diagnose(error, evidence)
}
