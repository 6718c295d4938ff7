//! The end of a guest run by [`Launch::run_raw`](super::Launch::run_raw).

use std::fmt;
use std::time::Duration;

use crate::launch::failure::GuestError;
use crate::launch::running::Running;

/// Time within which QEMU ends after `quit`.
const GONE: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawEnd {
    /// A line of the console matched the pattern of success.
    Expected {
        line: String,
    },
    /// A line of the console matched the pattern of failure.
    Failed {
        line: String,
    },
    /// The guest wrote to the exit port (`isa-debug-exit` at 0xf4).
    Port {
        value: u8,
    },
    PoweredOff,
    /// The guest reset itself, by a reboot or in a way that looks like one.
    Reset,
    /// A fault while handling a double fault, which resets a processor.
    TripleFault,
    /// The console shows the message of a Linux panic.
    Panicked,
    /// QEMU could not continue the guest.
    Suspended {
        /// QEMU's name for the guest's state.
        state: String,
    },
    /// The guest exceeded its time limit.
    Late {
        limit: Duration,
    },
    /// The user requested the stop.
    Stopped,
}

impl fmt::Display for RawEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expected { line } => {
                write!(f, "the console shows the expected line: {}", line.trim())
            }
            Self::Failed { line } => write!(f, "the console shows a failure: {}", line.trim()),
            Self::Port { value } => write!(f, "the guest wrote {value} to its exit port"),
            Self::PoweredOff => f.write_str("the guest powered off"),
            Self::Reset => f.write_str("the guest reset"),
            Self::TripleFault => f.write_str("the guest ended with a triple fault"),
            Self::Panicked => f.write_str("the guest panicked"),
            Self::Suspended { state } => write!(f, "QEMU stopped the guest: {state}"),
            Self::Late { limit } => write!(f, "the guest did not end within {limit:?}"),
            Self::Stopped => f.write_str("the guest was stopped"),
        }
    }
}

/// Determines the end after QEMU has ended.
pub(super) fn found(end: Option<RawEnd>, running: &mut Running) -> Result<RawEnd, GuestError> {
    let ended = running.ended(GONE);
    match end {
        // QMP reports triple faults, and reboots after a panic, as the same reset; the log and the
        // console distinguish them.
        Some(RawEnd::Reset) if running.has_triple_fault() => return Ok(RawEnd::TripleFault),
        Some(RawEnd::Reset) if running.console.panic().is_some() => return Ok(RawEnd::Panicked),
        Some(RawEnd::PoweredOff) | None => {}
        Some(end) => return Ok(end),
    }
    let errors = running.errors();
    let code = ended.and_then(|status| status.code()).unwrap_or_default();
    // QEMU's exit status for the exit port is twice the value plus 1 (`hw/misc/debugexit.c`). Its
    // own failures also give 1, but print an error.
    if code % 2 == 1 && (code > 1 || errors.is_empty()) {
        return Ok(RawEnd::Port { value: u8::try_from(code / 2).unwrap_or(u8::MAX) });
    }
    match (end, ended) {
        (None, Some(status)) => {
            Err(GuestError::Died { status, errors, console: running.console.tail() })
        }
        _ => Ok(RawEnd::PoweredOff),
    }
}
