//! Runs a kernel that needs only a serial port.

use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use super::arguments::System;
use super::failure::GuestError;
use super::guest::Launch;
use super::running::Running;
use super::runtime::Runtime;
use super::serial::{SerialReader, serial};
use super::session::Sink;
use super::watch::{Asked, Ended, Phase, Watch};
use numalab_guest_agent::protocol::Stream;

/// Time after its end marker in which a kernel may end QEMU by itself.
const LAST_WORDS: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A kernel's sign of success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BareKernel {
    /// The text that it prints on the serial port at its end.
    pub end_marker: String,
}

/// The outcome of a kernel's run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BareOutcome {
    /// The value written to the exit port (0xf4), if any.
    pub exit: Option<u8>,
    /// Time from the start of QEMU to the end marker.
    pub time: Duration,
    /// The memory emulator's report (JSON, `numalab-emulator/1`), if there was one.
    pub memory_report: Option<String>,
}

impl Launch {
    /// Boots the kernel and passes its output to `sink` until it ends.
    ///
    /// # Errors
    /// [`GuestError::Silent`] if it ends without its end marker; otherwise as for [`Launch::run`].
    pub fn run_bare(
        &self,
        runtime: &Runtime,
        kernel: &BareKernel,
        sink: &mut dyn Sink,
        asked: Asked,
    ) -> Result<BareOutcome, GuestError> {
        let started = Instant::now();
        let (copy, serial) = serial();
        let name = [self.files.kernel.to_string_lossy().into_owned()];
        let (mut running, sockets) =
            Running::start(self, runtime, System::Bare, &name, Some(copy))?;
        let mut monitor = running.monitor(&sockets, asked)?;
        // The vCPUs are still stopped (-S), so none of their work runs unpinned.
        running.pin(self, &mut monitor)?;
        running.go(&mut monitor)?;
        let limits = self.guest.limits;
        // A bare kernel has no first message that would end the boot phase, so one limit covers
        // both.
        let limit = limits.run.map(|run| run.saturating_add(limits.boot));
        let mut search = Search::new(&kernel.end_marker);
        let followed = {
            let watch = Watch::new(asked, &running.console, limits.boot);
            watch.begin(Phase::Run, limit);
            follow(&serial, &watch, &mut search, sink)
        };
        let console = running.console.tail();
        match followed {
            Err(Ended::Asked) => return Err(GuestError::Stopped),
            Err(Ended::Deadline { phase, limit }) => {
                return Err(GuestError::Hung { phase, limit, console });
            }
            // A panic on the console is not an error by itself: the end marker decides.
            Err(Ended::Lost) | Ok(()) => {}
        }
        let Some(time) = search.found.map(|at| at.duration_since(started)) else {
            return Err(GuestError::Silent { console });
        };
        let status = running.ended(LAST_WORDS);
        if status.is_none() {
            // QEMU's plugins write their reports when it quits.
            running.quit(&mut monitor);
        }
        // QEMU's exit status is twice the value plus 1 (`hw/misc/debugexit.c`).
        let code = status.and_then(|status| status.code()).filter(|code| code % 2 == 1);
        Ok(BareOutcome {
            exit: code.and_then(|code| u8::try_from(code / 2).ok()),
            time,
            memory_report: running.memory_report(),
        })
    }
}

/// Passes on the output until the console closes. A kernel that halts after its end marker instead
/// of ending QEMU is not waited for.
fn follow(
    serial: &SerialReader,
    watch: &Watch,
    search: &mut Search,
    sink: &mut dyn Sink,
) -> Result<(), Ended> {
    let mut looked = Instant::now();
    loop {
        // A timeout rather than a blocking receive, so that deadlines and requests to stop are
        // noticed.
        match serial.next_within(LOOK_EVERY) {
            Ok(bytes) => {
                sink.output(Stream::Out, &bytes);
                search.add(&bytes);
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        // A kernel that prints constantly must not keep deadlines from being checked.
        if looked.elapsed() < LOOK_EVERY {
            continue;
        }
        looked = Instant::now();
        watch.check()?;
        // The kernel may halt without ending QEMU; it has had its time to do so.
        if search.found.is_some_and(|at| at.elapsed() > LAST_WORDS) {
            return Ok(());
        }
    }
}

/// Searches for the end marker in text that arrives in pieces.
struct Search {
    marker: Vec<u8>,
    tail: Vec<u8>,
    found: Option<Instant>,
}

impl Search {
    fn new(marker: &str) -> Self {
        Self { marker: marker.as_bytes().to_vec(), tail: Vec::new(), found: None }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
        let length = self.marker.len().max(1);
        if self.tail.windows(length).any(|part| part == self.marker) {
            self.found.get_or_insert_with(Instant::now);
        }
        // Only a possible beginning of the marker is kept, however long the output is.
        let surplus = self.tail.len().saturating_sub(length);
        self.tail.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::console::Console;
    use std::sync::mpsc::TryRecvError;

    /// Regression: the deadline was checked only during pauses in the output.
    #[test]
    fn a_kernel_that_prints_constantly_ends_at_its_deadline() {
        let directory = tempfile::tempdir().unwrap();
        let console = Console::listen(&directory.path().join("console"), None).unwrap();
        let watch = Watch::new(&|| false, &console, Duration::from_millis(100));
        let (prints, serial) = serial();
        let (ended, is_over) = std::sync::mpsc::channel::<()>();
        let kernel = std::thread::spawn(move || {
            while is_over.try_recv() != Err(TryRecvError::Disconnected) {
                prints.add(b"panic\n");
            }
        });
        let mut sink = |_: Stream, _: &[u8]| {};
        let outcome = follow(&serial, &watch, &mut Search::new("done"), &mut sink);
        assert!(matches!(outcome, Err(Ended::Deadline { .. })), "{outcome:?}");
        drop((serial, ended));
        kernel.join().unwrap();
    }

    #[test]
    fn the_end_marker_is_found_across_pieces() {
        let mut search = Search::new("TESTS COMPLETE");
        for piece in ["ok 1\nTES", "TS COMP", "LETE\n"] {
            assert!(search.found.is_none());
            search.add(piece.as_bytes());
        }
        assert!(search.found.is_some());
    }

    #[test]
    fn other_text_is_not_an_end_marker() {
        let mut search = Search::new("done");
        search.add(b"don't");
        search.add(b"e");
        assert!(search.found.is_none());
    }
}
