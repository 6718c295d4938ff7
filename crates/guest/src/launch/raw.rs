//! Runs any kernel, firmware or disk, observed only by its console, and numalab's own kernel.

mod end;
mod patterns;

use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use numalab_guest_agent::protocol::Stream;
use numalab_image::Medium;
use regex::Regex;

pub use self::end::RawEnd;
pub use self::patterns::Patterns;
use self::patterns::Search;
use super::arguments::System;
use super::console::ConsoleTail;
use super::failure::GuestError;
use super::guest::Launch;
use super::running::Running;
use super::runtime::Runtime;
use super::serial::{SerialReader, serial};
use super::session::Sink;
use super::watch::{Ended, Phase, StopCheck, Watch};
use crate::qmp::{MemoryProof, PinReport, QmpClient, prove_memory};

const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Time allowed for numalab's own kernel to end QEMU after its last line.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Time without output after which an unfinished line counts as a prompt.
const PROMPT_AFTER: Duration = Duration::from_secs(1);

/// The medium to boot, and the console lines that end it.
#[derive(Clone, Debug)]
pub struct RawTask {
    /// The file to boot.
    pub medium: Medium,
    /// Console lines that end the run.
    pub patterns: Patterns,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RawOutcome {
    pub end: RawEnd,
    /// Time from the start of QEMU to that end.
    pub time: Duration,
    /// The host cpus of the vCPUs at the end, if they were pinned.
    pub pins: Option<PinReport>,
    /// The placement of guest memory at the end; `None` if QEMU had ended by then.
    pub memory: Option<Vec<MemoryProof>>,
    /// The memory emulator's report (JSON, `numalab-emulator/1`), if there was one.
    pub memory_report: Option<String>,
}

impl Launch {
    /// Boots the medium and passes its console to `sink` until a pattern decides, it ends by
    /// itself, its time is over, or the user stops it.
    ///
    /// # Errors
    /// [`GuestError`] if there was no guest or QEMU failed; every end of the guest itself is a
    /// [`RawOutcome`].
    pub fn run_raw(
        &self,
        runtime: &Runtime,
        task: &RawTask,
        sink: &mut dyn Sink,
        asked: StopCheck,
    ) -> Result<RawOutcome, GuestError> {
        let system = System::Raw(task.medium);
        let limit = self.guest.limits.run;
        let heard = self.hear(runtime, (system, limit), &task.patterns, sink, asked);
        heard.map(|(outcome, _)| outcome)
    }

    /// Boots a kernel that needs only a serial port, which is passed to `sink` until a line has its end
    /// marker. Returns the memory emulator's report, if there was one.
    ///
    /// # Errors
    /// [`GuestError::Silent`] if it ends without its end marker; otherwise as for [`Launch::run`].
    pub fn run_bare(
        &self,
        runtime: &Runtime,
        end_marker: &str,
        sink: &mut dyn Sink,
        asked: StopCheck,
    ) -> Result<Option<String>, GuestError> {
        let expect = Regex::new(&regex::escape(end_marker)).ok();
        let patterns = Patterns { expect, fail: None };
        let limits = self.guest.limits;
        // The kernel prints no first message that would end the boot phase, so one limit covers
        // both phases.
        let limit = limits.run.map(|run| run.saturating_add(limits.boot));
        let system = (System::Bare, limit);
        let (outcome, console) = self.hear(runtime, system, &patterns, sink, asked)?;
        match outcome.end {
            RawEnd::Expected { .. } => Ok(outcome.memory_report),
            RawEnd::Stopped => Err(GuestError::Stopped),
            RawEnd::Late { limit } => Err(GuestError::Hung { phase: Phase::Run, limit, console }),
            _ => Err(GuestError::Silent { console }),
        }
    }

    /// Boots a system with a time limit, and returns its outcome and the end of its console.
    fn hear(
        &self,
        runtime: &Runtime,
        (system, limit): (System, Option<Duration>),
        patterns: &Patterns,
        sink: &mut dyn Sink,
        asked: StopCheck,
    ) -> Result<(RawOutcome, ConsoleTail), GuestError> {
        let started = Instant::now();
        let (copy, serial) = serial();
        let name = [self.files.kernel.to_string_lossy().into_owned()];
        let (mut running, sockets) = Running::start(self, runtime, system, &name, Some(copy))?;
        let mut monitor = running.monitor(&sockets, asked)?;
        // The vCPUs are still stopped (-S), so none of their work runs unpinned.
        let pins = running.pin(self, &mut monitor)?;
        running.go(&mut monitor)?;
        let mut hearing = Hearing { search: patterns.search(), sink };
        let watch = Watch::new(asked, &running.console, self.guest.limits.boot);
        watch.begin(Phase::Run, limit);
        // Polling would disturb the virtual time of numalab's own kernel, under which QEMU exits.
        let polled = matches!(system, System::Raw(_)).then_some(&mut monitor);
        let end = follow(&serial, &watch, polled, &mut hearing);
        let time = started.elapsed();
        let (mut observed, mut memory) = (None, None);
        // numalab's own kernel ends QEMU after its last line, and a query at that moment can block
        // both until the monitor's time limit.
        if matches!(system, System::Raw(_)) || running.ended(LAST_WORDS).is_none() {
            // QEMU may have ended already, so neither can be queried.
            observed = pins.and_then(|pins| pins.observed().ok());
            memory = prove_memory(&mut monitor, running.process.pid()).ok();
            // The rest of the console is complete only after QEMU has closed the pipe.
            running.quit(&mut monitor);
        }
        let pins = observed;
        let late = hearing.finish(&serial);
        let end = match (end, late) {
            // A deciding line outweighs the way QEMU ended: a kernel often powers off right after
            // it.
            (Some(end @ (RawEnd::Expected { .. } | RawEnd::Failed { .. })), _) => end,
            (_, Some(end)) => end,
            (end, None) => end::found(end, &mut running)?,
        };
        let memory_report = running.memory_report();
        Ok((RawOutcome { end, time, pins, memory, memory_report }, running.console.tail()))
    }
}

/// Passes on the console and searches it for the patterns.
struct Hearing<'a> {
    search: Search<'a>,
    sink: &'a mut dyn Sink,
}

impl Hearing<'_> {
    fn hear(&mut self, bytes: &[u8]) -> Option<RawEnd> {
        self.sink.output(Stream::Out, bytes);
        self.search.add(bytes)
    }

    /// Passes on the rest of the output after QEMU has ended, and returns the first deciding line
    /// in it.
    fn finish(&mut self, serial: &SerialReader) -> Option<RawEnd> {
        let ends: Vec<RawEnd> = serial.rest().filter_map(|bytes| self.hear(&bytes)).collect();
        ends.into_iter().next().or_else(|| self.search.rest())
    }
}

/// Passes on the output until an end is known; `None` if QEMU ended, whose status then decides.
fn follow(
    serial: &SerialReader,
    watch: &Watch,
    mut monitor: Option<&mut QmpClient>,
    hearing: &mut Hearing,
) -> Option<RawEnd> {
    let (mut looked, mut heard) = (Instant::now(), Instant::now());
    loop {
        match serial.next_within(LOOK_EVERY) {
            Ok(bytes) => {
                heard = Instant::now();
                if let Some(end) = hearing.hear(&bytes) {
                    return Some(end);
                }
            }
            // A prompt has no newline, so an unfinished line is tested after a pause.
            Err(RecvTimeoutError::Timeout) if heard.elapsed() > PROMPT_AFTER => {
                if let Some(end) = hearing.search.rest() {
                    return Some(end);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return None,
        }
        // A guest that prints constantly must not keep deadlines from being checked.
        if looked.elapsed() < LOOK_EVERY {
            continue;
        }
        looked = Instant::now();
        match watch.check() {
            Ok(()) => {}
            Err(Ended::Stopped) => return Some(RawEnd::Stopped),
            Err(Ended::Deadline { limit, .. }) => return Some(RawEnd::Late { limit }),
            Err(Ended::Lost) => return Some(RawEnd::Panicked),
        }
        let Some(monitor) = &mut monitor else { continue };
        // QEMU pauses instead of exiting (`-action shutdown=pause`), so its state has to be polled.
        match monitor.state().as_deref() {
            Ok("shutdown") if monitor.shutdown_reason() == Some("guest-reset") => {
                return Some(RawEnd::Reset);
            }
            Ok("shutdown") => return Some(RawEnd::PoweredOff),
            Ok(state @ ("internal-error" | "io-error" | "guest-panicked" | "watchdog")) => {
                return Some(RawEnd::Suspended { state: state.to_owned() });
            }
            // A user who pauses the guest over the control socket also resumes it.
            Ok(_) => {}
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{TryRecvError, channel};

    use super::*;
    use crate::launch::console::Console;

    /// Regression: the deadline was checked only during pauses in the output.
    #[test]
    fn a_kernel_that_prints_constantly_ends_at_its_deadline() {
        let directory = tempfile::tempdir().unwrap();
        let console = Console::listen(&directory.path().join("console"), None).unwrap();
        let watch = Watch::new(&|| false, &console, Duration::from_millis(100));
        let (prints, serial) = serial();
        let (ended, is_over) = channel::<()>();
        let kernel = std::thread::spawn(move || {
            while is_over.try_recv() != Err(TryRecvError::Disconnected) {
                prints.add(b"panic\n");
            }
        });
        let patterns = Patterns::default();
        let mut sink = |_: Stream, _: &[u8]| {};
        let mut hearing = Hearing { search: patterns.search(), sink: &mut sink };
        let end = follow(&serial, &watch, None, &mut hearing);
        assert!(matches!(end, Some(RawEnd::Late { .. })), "{end:?}");
        drop((serial, ended));
        kernel.join().unwrap();
    }
}
