//! How a guest of somebody else's ended.

use std::fmt;
use std::time::Duration;

use crate::launch::failure::GuestError;
use crate::launch::running::Running;

/// QEMU has ended within this time after it was told to.
const GONE: Duration = Duration::from_secs(1);

/// How a guest of somebody else's ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawEnd {
    /// A line was what success looks like.
    Expected {
        /// The line.
        line: String,
    },
    /// A line was what failure looks like.
    Failed {
        /// The line.
        line: String,
    },
    /// It wrote to the exit port (`isa-debug-exit` at 0xf4).
    Port {
        /// What it wrote.
        value: u8,
    },
    /// It switched itself off.
    PoweredOff,
    /// It reset itself: a reboot, or what could not be told from one.
    Reset,
    /// A fault within the handling of a double fault, which resets a processor.
    TripleFault,
    /// Its console has the words of Linux's panic.
    Panicked,
    /// QEMU could not go on with it.
    Suspended {
        /// QEMU's name of its state.
        state: String,
    },
    /// Its time was over.
    Late {
        /// The time.
        limit: Duration,
    },
    /// Somebody asked for the end.
    Stopped,
}

impl fmt::Display for RawEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expected { line } => {
                write!(f, "the console shows what was expected: {}", line.trim())
            }
            Self::Failed { line } => write!(f, "the console shows a failure: {}", line.trim()),
            Self::Port { value } => write!(f, "the guest wrote {value} to its exit port"),
            Self::PoweredOff => f.write_str("the guest powered off"),
            Self::Reset => f.write_str("the guest reset"),
            Self::TripleFault => f.write_str("the guest ended by a triple fault"),
            Self::Panicked => f.write_str("the guest panicked"),
            Self::Suspended { state } => write!(f, "QEMU stopped the guest: {state}"),
            Self::Late { limit } => write!(f, "the guest had not ended after {limit:?}"),
            Self::Stopped => f.write_str("the guest was stopped"),
        }
    }
}

/// The end by all that is known once QEMU has gone.
pub(super) fn found(end: Option<RawEnd>, running: &mut Running) -> Result<RawEnd, GuestError> {
    let ended = running.ended(GONE);
    match end {
        Some(RawEnd::Reset) if running.has_triple_fault() => return Ok(RawEnd::TripleFault),
        Some(RawEnd::Reset) if running.console.panic().is_some() => return Ok(RawEnd::Panicked),
        Some(RawEnd::PoweredOff) | None => {}
        Some(end) => return Ok(end),
    }
    let errors = running.errors();
    let code = ended.and_then(|status| status.code()).unwrap_or_default();
    // QEMU's status is the value twice and 1 (`hw/misc/debugexit.c`); of its own failures it
    // says more than their status, which is 1 too.
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
