//! Messages while a guest runs and when it has ended, also about pinned threads.

use std::cell::Cell;
use std::io::{self, Write};
use std::process::ExitCode;

use numalab_guest::qmp::MemoryProof;
use numalab_guest::{GuestError, Outcome, PinReport, Runtime, Sink, StopCheck};
use numalab_guest_agent::Stream;
use numalab_host::{Interrupt, note, print_error};

use super::memory_emulator;
use crate::args::BootArgs;
use crate::failure::Failure;
use crate::output;

/// Passes a guest's output on as it arrives, and ends the guest when its reader is gone or a signal
/// arrives.
pub(super) struct Relay {
    interrupt: Interrupt,
    unread: Cell<bool>,
    silent: Cell<bool>,
}

impl Relay {
    pub fn new() -> Result<Self, Failure> {
        let (unread, silent) = (Cell::new(false), Cell::new(true));
        Ok(Self { interrupt: Interrupt::install()?, unread, silent })
    }

    /// Runs a guest to its end.
    pub fn follow<T>(
        &self,
        run: impl FnOnce(&Runtime, &mut dyn Sink, StopCheck<'_>) -> Result<T, GuestError>,
    ) -> Result<T, GuestError> {
        let mut sink = |stream: Stream, bytes: &[u8]| {
            self.silent.set(false);
            if pass_on(stream, bytes).is_err() {
                self.unread.set(true);
            }
        };
        run(&Runtime::open()?, &mut sink, &|| self.interrupt.requested() || self.is_unread())
    }

    /// Returns true if the reader has closed the pipe.
    pub fn is_unread(&self) -> bool {
        self.unread.get()
    }

    /// Returns true if nothing was printed.
    pub fn is_silent(&self) -> bool {
        self.silent.get()
    }
}

fn pass_on(stream: Stream, bytes: &[u8]) -> io::Result<()> {
    match stream {
        Stream::Out => {
            let mut out = io::stdout().lock();
            out.write_all(bytes)?;
            out.flush()
        }
        Stream::Err => io::stderr().lock().write_all(bytes),
    }
}

/// Reports what the guest could not do and where it ran, keeps its memory emulator's report, and
/// returns its command's exit code.
pub(super) fn conclude(outcome: &Outcome, args: &BootArgs) -> Result<ExitCode, Failure> {
    outcome.complaints.iter().for_each(|complaint| note(format_args!("guest: {complaint}")));
    if !output::quiet() {
        say_placement(outcome.pins.as_ref(), outcome.memory.as_deref());
    }
    let wanted = args.memory_emulator.emulate_report.as_deref();
    memory_emulator::keep_report(wanted, outcome.memory_report.as_deref())?;
    Ok(ExitCode::from(outcome.exit.code()))
}

/// Reports where the guest's threads and memory were.
pub(super) fn say_placement(pins: Option<&PinReport>, memory: Option<&[MemoryProof]>) {
    if let Some(pins) = pins {
        print_error(pins);
    }
    for proof in memory.into_iter().flatten() {
        print_error(format_args!("{proof}\n"));
    }
}
