//! A boot under QEMU, from its start to its last line.

use std::string::String;
use std::vec::Vec;

use numalab_guest::{GuestError, Launch, Runtime};
use numalab_guest_agent::Stream;
use numalab_host::{Classed, ErrorClass};

use crate::event::Event;
use crate::results::{KernelMessage, Reader, Results, ResultsError};
use crate::wire::END_MARK;

/// The prefix of the kernel's message when it stops because of its command line or its machine.
const REFUSED: &str = "REFUSED: ";

/// Reasons why a boot gave no results.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The kernel refuses its command line or its machine.
    #[error("the kernel refused: {reason}")]
    Refused { reason: String },
    /// QEMU could not be started, or the kernel ended without its last line.
    #[error(transparent)]
    Guest(#[from] GuestError),
    /// The received results are not valid.
    #[error("the kernel's results: {0}")]
    Results(#[from] ResultsError),
    #[error("the kernel's last line is damaged: its results are lost")]
    Cut,
}

impl Classed for RunError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Refused { .. } => ErrorClass::BadInput,
            Self::Guest(error) => error.class(),
            Self::Results(_) | Self::Cut => ErrorClass::Failed,
        }
    }

    fn remedy(&self) -> Option<String> {
        let Self::Guest(error) = self else { return None };
        error.remedy()
    }
}

/// The state of reading the serial port.
struct Listener<'t> {
    observe: &'t mut dyn FnMut(&Results, &Event),
    reader: Reader,
    /// The incomplete line at the end.
    pending: Vec<u8>,
    refused: Option<String>,
    failed: Option<ResultsError>,
}

impl Listener<'_> {
    fn hear(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        while let Some(end) = self.pending.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.pending.drain(..=end).collect();
            self.line(&String::from_utf8_lossy(&line));
        }
    }

    fn line(&mut self, line: &str) {
        match self.reader.line(line) {
            Ok(KernelMessage::Result(event)) => (self.observe)(self.reader.results(), &event),
            Ok(KernelMessage::Text(text)) => {
                if let Some(reason) = text.strip_prefix(REFUSED) {
                    self.refused = Some(reason.into());
                }
            }
            Ok(KernelMessage::End) => {}
            // The first error is the cause.
            Err(error) => {
                self.failed.get_or_insert(error);
            }
        }
    }
}

/// Boots the kernel and reads its output; `observe` is called with every result as it arrives. Returns the
/// memory emulator's report, if there was one, and all results.
///
/// # Errors
/// [`RunError`]; a failed workload is not an error but [`Results::failure`].
pub fn run(
    launch: &Launch,
    runtime: &Runtime,
    observe: &mut dyn FnMut(&Results, &Event),
    asked: &dyn Fn() -> bool,
) -> Result<(Option<String>, Results), RunError> {
    let mut listener = Listener {
        observe,
        reader: Reader::default(),
        pending: Vec::new(),
        refused: None,
        failed: None,
    };
    let mut sink = |_: Stream, bytes: &[u8]| listener.hear(bytes);
    let ended = launch.run_bare(runtime, END_MARK, &mut sink, asked);
    if let Some(reason) = listener.refused {
        return Err(RunError::Refused { reason });
    }
    let report = ended?;
    if let Some(error) = listener.failed {
        return Err(error.into());
    }
    let results = listener.reader.finish().ok_or(RunError::Cut)?;
    Ok((report, results))
}
