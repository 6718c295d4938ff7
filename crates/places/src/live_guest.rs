//! A guest that stays up and serves requests.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use numalab_guest::{GuestError, Launch, Outcome, Runtime, Sink, Task};
use numalab_guest_agent::{Job, Stream};
use numalab_host::{Classed, Interrupt, from_json};
use numalab_record::Environment;
use numalab_record::study::Notice;
use numalab_study::BackendError;
use serde::Serialize;

use super::agent::{AgentAnswer, Request, Setup};

/// The interval at which a waiting backend checks for an interrupt.
const LOOK: Duration = Duration::from_millis(100);
/// The number of bytes kept of an agent's error output.
const ERRORS_BYTES: usize = 4096;

/// A guest with an agent in it. Dropping it ends the guest and waits for its exit.
pub(super) struct LiveGuest {
    requests: Option<Sender<Vec<u8>>>,
    answers: Receiver<Vec<u8>>,
    thread: Option<JoinHandle<Result<Outcome, GuestError>>>,
    interrupt: Interrupt,
}

/// A guest's description of itself once it is up.
pub(super) struct Inside {
    pub(super) environment: Environment,
    pub(super) notices: Vec<Notice>,
}

impl LiveGuest {
    /// Boots the guest and waits until its agent is ready and has checked that it can do what the
    /// study asks. `spec` is the settings of the backend inside it.
    pub(super) fn boot(
        launch: Launch,
        spec: String,
        setup: &Setup,
        interrupt: &Interrupt,
    ) -> Result<(Self, Inside), BackendError> {
        let runtime = Runtime::open().map_err(|error| failed(&error))?;
        let (requests, orders) = channel();
        let (says, answers) = channel();
        let asked = interrupt.clone();
        let thread = thread::spawn(move || {
            let job = Job {
                input: true,
                ..Job::new(["numalab".to_owned(), "study".to_owned(), "agent".to_owned(), spec])
            };
            let task = Task { job, ..Task::default() };
            let mut sink =
                Wire { orders, says, line: Vec::new(), errors: Vec::new(), waits: false };
            launch.run(&runtime, &task, &mut sink, &|| asked.requested())
        });
        let mut guest = Self {
            requests: Some(requests),
            answers,
            thread: Some(thread),
            interrupt: interrupt.clone(),
        };
        match guest.answer()? {
            AgentAnswer::Ready => {}
            AgentAnswer::Failed(error) => return Err(error),
            other => return Err(unexpected_answer(&other)),
        }
        match guest.exchange(setup)? {
            AgentAnswer::Prepared { environment, notices } => {
                Ok((guest, Inside { environment, notices }))
            }
            other => Err(unexpected_answer(&other)),
        }
    }

    /// Sends a request to the agent and waits for its answer.
    pub(super) fn ask(&mut self, request: &Request) -> Result<AgentAnswer, BackendError> {
        self.exchange(request)
    }

    fn exchange(&mut self, message: &impl Serialize) -> Result<AgentAnswer, BackendError> {
        let mut line = serde_json::to_vec(message)
            .map_err(|error| BackendError::failed("sending a request to the guest", error))?;
        line.push(b'\n');
        if let Some(requests) = &self.requests {
            // If the guest is gone, the error appears when waiting for its answer.
            let _ = requests.send(line);
        }
        match self.answer()? {
            AgentAnswer::Failed(error) => Err(error),
            answer => Ok(answer),
        }
    }

    fn answer(&mut self) -> Result<AgentAnswer, BackendError> {
        loop {
            match self.answers.recv_timeout(LOOK) {
                Ok(line) => {
                    return from_json(&line).map_err(|error| {
                        BackendError::failed(
                            "reading the guest's answer",
                            format!("{error}: {}", String::from_utf8_lossy(&line)),
                        )
                    });
                }
                Err(RecvTimeoutError::Timeout) if self.interrupt.requested() => {
                    return Err(BackendError::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.gone()),
            }
        }
    }

    /// Returns the reason why the guest ended.
    fn gone(&mut self) -> BackendError {
        self.requests = None;
        let ended = self.thread.take().and_then(|thread| thread.join().ok());
        if self.interrupt.requested() {
            return BackendError::Interrupted;
        }
        match ended {
            Some(Err(error)) => failed(&error),
            Some(Ok(outcome)) => BackendError::failed(
                "the guest's agent",
                format!("it ended with {:?} {}", outcome.exit, outcome.complaints.join("; ")),
            ),
            None => BackendError::failed("the guest", "its thread has ended"),
        }
    }
}

impl Drop for LiveGuest {
    fn drop(&mut self) {
        // The end of its input ends the agent, and the agent's end ends the guest.
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Converts an error in starting or ending a guest.
pub(super) fn failed(error: &dyn Classed) -> BackendError {
    BackendError::of("the guest", error)
}

/// Returns the error for an answer that does not match its request.
pub(super) fn unexpected_answer(answer: &AgentAnswer) -> BackendError {
    BackendError::failed("reading the guest's answer", format!("unexpected: {answer:?}"))
}

/// The connection between the guest's channel and the backend: lines of answers out, requests in.
struct Wire {
    orders: Receiver<Vec<u8>>,
    says: Sender<Vec<u8>>,
    line: Vec<u8>,
    errors: Vec<u8>,
    /// True if the agent has answered and waits for the next request.
    waits: bool,
}

impl Sink for Wire {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        if stream == Stream::Err {
            let room = ERRORS_BYTES.saturating_sub(self.errors.len());
            self.errors.extend(bytes.iter().take(room));
            return;
        }
        for &byte in bytes {
            if byte == b'\n' {
                // If the backend is gone, there are no more requests either.
                let _ = self.says.send(std::mem::take(&mut self.line));
                self.waits = true;
            } else {
                self.line.push(byte);
            }
        }
    }

    fn input(&mut self) -> Option<Vec<u8>> {
        if !self.waits {
            return None;
        }
        self.waits = false;
        Some(self.orders.recv().unwrap_or_default())
    }
}
