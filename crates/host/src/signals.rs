//! Ending between windows on ctrl-C.

use std::io;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::error_class::ErrorClass;

/// Why signal handlers could not be installed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignalError {
    /// The kernel refused.
    #[error("cannot install a handler for signal {signal}: {reason}")]
    NotInstalled {
        /// The signal's number.
        signal: i32,
        /// The kernel's answer.
        reason: String,
    },
}

impl SignalError {
    /// The class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::NotInstalled { .. } => ErrorClass::Failed,
        }
    }
}

/// Whether the user wants the work to end: asked between windows. Copies share the
/// answer.
#[derive(Clone, Debug)]
pub struct Interrupt {
    requested: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Heeds SIGINT, SIGTERM and SIGHUP from now on. The first one is only noted; a
    /// second one ends the process at once with exit code 128 plus its number.
    ///
    /// # Errors
    /// [`SignalError::NotInstalled`] if the kernel refuses a handler.
    pub fn install() -> Result<Self, SignalError> {
        let interrupt = Self::never();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            interrupt
                .heed(signal)
                .map_err(|error| SignalError::NotInstalled { signal, reason: error.to_string() })?;
        }
        Ok(interrupt)
    }

    /// One that is never requested, for work which nobody can interrupt.
    #[must_use]
    pub fn never() -> Self {
        Self { requested: Arc::new(AtomicBool::new(false)), signal: Arc::new(AtomicUsize::new(0)) }
    }

    fn heed(&self, signal: i32) -> io::Result<()> {
        // Handlers run in the order of registration: the shutdown comes before the flag
        // is set, so that it acts on the second signal only.
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&self.requested))?;
        let number = usize::try_from(signal).unwrap_or(0);
        flag::register_usize(signal, Arc::clone(&self.signal), number)?;
        flag::register(signal, Arc::clone(&self.requested))?;
        Ok(())
    }

    /// Whether the work shall end.
    #[must_use]
    pub fn requested(&self) -> bool {
        // Nothing else is published by the flag, so no ordering is needed.
        self.requested.load(Ordering::Relaxed)
    }

    /// Asks for the end of the work, as a signal would.
    pub fn request(&self) {
        self.requested.store(true, Ordering::Relaxed);
    }

    /// The last signal that asked for it.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            number => i32::try_from(number).ok(),
        }
    }
}

/// Asks a child to end (SIGTERM). One that has ended is left alone.
pub fn end_gently(child: &Child) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // Not waited for yet, so that the number is still the child's.
        let _ = kill_process(pid, Signal::TERM);
    }
}
