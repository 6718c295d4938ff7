//! Stops the work between windows on ctrl-C.

use std::io;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXCPU, SIGXFSZ};
use signal_hook::flag;

use crate::error_class::{Classed, ErrorClass};

/// Number of steps for which a command may continue after it was asked to end, before it is killed.
const GRACE_STEPS: u32 = 100;
const STEP: Duration = Duration::from_millis(50);
/// Longest time until a waiting process notices a signal.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Reason why signal handlers could not be installed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignalError {
    /// The kernel refused.
    #[error("cannot install a handler for signal {signal}: {reason}")]
    NotInstalled { signal: i32, reason: String },
}

impl Classed for SignalError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::NotInstalled { .. } => ErrorClass::Failed,
        }
    }
}

/// The user's request to stop, checked between windows. Copies share it.
#[derive(Clone, Debug)]
pub struct Interrupt {
    requested: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Handles SIGINT, SIGTERM, SIGHUP and SIGXCPU from now on; the last is for the soft limit of CPU
    /// time (`ulimit -S -t`), after which the kernel repeats it each second. The first signal only sets the request; a
    /// second one ends the process at once with exit code 128 plus its number.
    ///
    /// # Errors
    /// [`SignalError::NotInstalled`] if the kernel refuses a handler.
    pub fn install() -> Result<Self, SignalError> {
        let interrupt = Self::never();
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGXCPU] {
            interrupt
                .handle(signal)
                .map_err(|error| SignalError::NotInstalled { signal, reason: error.to_string() })?;
        }
        Ok(interrupt)
    }

    /// Creates an interrupt that is never requested, for work that cannot be interrupted.
    pub fn never() -> Self {
        Self { requested: Arc::new(AtomicBool::new(false)), signal: Arc::new(AtomicUsize::new(0)) }
    }

    fn handle(&self, signal: i32) -> io::Result<()> {
        // Handlers run in the order of registration: the shutdown comes before the flag is set, so
        // that it acts on the second signal only.
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&self.requested))?;
        let number = usize::try_from(signal).unwrap_or(0);
        flag::register_usize(signal, Arc::clone(&self.signal), number)?;
        flag::register(signal, Arc::clone(&self.requested))?;
        Ok(())
    }

    /// Reports whether the work should stop.
    pub fn requested(&self) -> bool {
        // The flag publishes no other data, so no ordering is needed.
        self.requested.load(Ordering::Relaxed)
    }

    /// Waits for this time, or until the request.
    pub fn wait(&self, time: Duration) {
        let until = Instant::now() + time;
        while !self.requested() && Instant::now() < until {
            thread::sleep(LOOK_EVERY.min(until.saturating_duration_since(Instant::now())));
        }
    }

    /// Requests the stop, as a signal would.
    pub fn request(&self) {
        self.requested.store(true, Ordering::Relaxed);
    }

    /// Returns the last signal received.
    pub fn signal(&self) -> Option<i32> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            number => i32::try_from(number).ok(),
        }
    }
}

/// Makes a write beyond the limit of file sizes (`ulimit -f`) fail with an error that names its file,
/// where SIGXFSZ would end this process without a word. A handler, unlike the ignored signal, is not
/// inherited by commands that this process starts.
///
/// # Errors
/// [`SignalError::NotInstalled`] if the kernel refuses a handler.
pub fn report_file_limit() -> Result<(), SignalError> {
    flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))
        .map(drop)
        .map_err(|error| SignalError::NotInstalled { signal: SIGXFSZ, reason: error.to_string() })
}

/// Waits for a command on this terminal. A request to stop is passed on to it, and it is killed if
/// it has not ended after five seconds.
///
/// # Errors
/// That of the system, if it cannot be waited for.
pub fn wait_passing_signals(mut child: Child, interrupt: &Interrupt) -> io::Result<ExitStatus> {
    let mut steps_since_asked = 0;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if interrupt.requested() {
            match steps_since_asked {
                0 => end_gently(&child),
                GRACE_STEPS => child.kill()?,
                _ => {}
            }
            steps_since_asked += 1;
        }
        thread::sleep(STEP);
    }
}

/// Sends SIGTERM to a child, unless it has ended.
pub fn end_gently(child: &Child) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // The child has not been waited for, so its number cannot have been reused.
        let _ = kill_process(pid, Signal::TERM);
    }
}
