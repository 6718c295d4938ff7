//! Runs somebody else's kernel, firmware or disk, of which nothing is known but its console.

mod end;
mod patterns;

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use numalab_guest_agent::protocol::Stream;
use numalab_image::Medium;

pub use self::end::RawEnd;
pub use self::patterns::Patterns;
use self::patterns::Search;
use super::arguments::System;
use super::failure::GuestError;
use super::guest::Launch;
use super::running::Running;
use super::runtime::Runtime;
use super::session::Sink;
use super::watch::{Asked, Ended, Phase, Watch};
use crate::qmp::{MemoryProof, PinReport, QmpClient, prove_memory};

const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A line after which nothing comes for so long is a prompt.
const PROMPT_AFTER: Duration = Duration::from_secs(1);

/// What is booted, and which lines of its console end it.
#[derive(Clone, Debug)]
pub struct RawTask {
    /// What the file is that boots.
    pub medium: Medium,
    /// The lines that decide.
    pub patterns: Patterns,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct RawOutcome {
    /// How it ended.
    pub end: RawEnd,
    /// From the start of QEMU to that end.
    pub time: Duration,
    /// Where the virtual cpus were at the end, if they were to be anywhere.
    pub pins: Option<PinReport>,
    /// Where guest memory lay at the end; none where QEMU had gone by then.
    pub memory: Option<Vec<MemoryProof>>,
    /// What the memory emulator reported (JSON, `numalab-emulator/1`), if there was one.
    pub memory_report: Option<String>,
}

impl Launch {
    /// Boots what the task says and passes its console on as it comes, until a pattern
    /// decides, it ends by itself, its time is over, or somebody asks.
    ///
    /// # Errors
    /// [`GuestError`] if there was no guest or QEMU failed; however the guest itself ends is
    /// a [`RawOutcome`].
    pub fn run_raw(
        &self,
        runtime: &Runtime,
        task: &RawTask,
        sink: &mut dyn Sink,
        asked: Asked,
    ) -> Result<RawOutcome, GuestError> {
        let started = Instant::now();
        let (copy, serial) = mpsc::channel();
        let system = System::Raw(task.medium);
        let name = [self.files.kernel.to_string_lossy().into_owned()];
        let (mut running, sockets) = Running::start(self, runtime, system, &name, Some(copy))?;
        let mut monitor = running.monitor(&sockets, asked)?;
        let pins = running.pin(self, &mut monitor)?;
        running.go(&mut monitor)?;
        let mut hearing = Hearing { search: task.patterns.search(), sink };
        let watch = Watch::new(asked, &running.console, self.guest.limits.boot);
        watch.begin(Phase::Run, self.guest.limits.run);
        let end = follow(&serial, &watch, &mut monitor, &mut hearing);
        let time = started.elapsed();
        // QEMU may have gone already, with everything that could be asked.
        let pins = pins.and_then(|pins| pins.observed().ok());
        let memory = prove_memory(&mut monitor, running.process.pid()).ok();
        running.quit(&mut monitor);
        let late = hearing.finish(&serial);
        let end = match (end, late) {
            (Some(end @ (RawEnd::Expected { .. } | RawEnd::Failed { .. })), _) => end,
            (_, Some(end)) => end,
            (end, None) => end::found(end, &mut running)?,
        };
        let memory_report = running.memory_report();
        Ok(RawOutcome { end, time, pins, memory, memory_report })
    }
}

/// Who listens to the console.
struct Hearing<'a> {
    search: Search<'a>,
    sink: &'a mut dyn Sink,
}

impl Hearing<'_> {
    fn hear(&mut self, bytes: &[u8]) -> Option<RawEnd> {
        self.sink.output(Stream::Out, bytes);
        self.search.add(bytes)
    }

    /// What has not been heard when QEMU has ended; the first line of it that decides.
    fn finish(&mut self, serial: &Receiver<Vec<u8>>) -> Option<RawEnd> {
        let ends: Vec<RawEnd> = serial.iter().filter_map(|bytes| self.hear(&bytes)).collect();
        ends.into_iter().next().or_else(|| self.search.rest())
    }
}

/// Passes on what comes until something ends it; nothing if QEMU did, which then says how.
fn follow(
    serial: &Receiver<Vec<u8>>,
    watch: &Watch,
    monitor: &mut QmpClient,
    hearing: &mut Hearing,
) -> Option<RawEnd> {
    let (mut looked, mut heard) = (Instant::now(), Instant::now());
    loop {
        match serial.recv_timeout(LOOK_EVERY) {
            Ok(bytes) => {
                heard = Instant::now();
                if let Some(end) = hearing.hear(&bytes) {
                    return Some(end);
                }
            }
            Err(RecvTimeoutError::Timeout) if heard.elapsed() > PROMPT_AFTER => {
                if let Some(end) = hearing.search.rest() {
                    return Some(end);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return None,
        }
        if looked.elapsed() < LOOK_EVERY {
            continue;
        }
        looked = Instant::now();
        match watch.check() {
            Ok(()) => {}
            Err(Ended::Asked) => return Some(RawEnd::Stopped),
            Err(Ended::Deadline { limit, .. }) => return Some(RawEnd::Late { limit }),
            Err(Ended::Lost) => return Some(RawEnd::Panicked),
        }
        match monitor.state().as_deref() {
            Ok("shutdown") if monitor.shutdown_reason() == Some("guest-reset") => {
                return Some(RawEnd::Reset);
            }
            Ok("shutdown") => return Some(RawEnd::PoweredOff),
            Ok(state @ ("internal-error" | "io-error" | "guest-panicked" | "watchdog")) => {
                return Some(RawEnd::Suspended { state: state.to_owned() });
            }
            // Whoever pauses it over the control socket goes on with it.
            Ok(_) => {}
            Err(_) => return None,
        }
    }
}
