//! Waits that end at a deadline, on a request to stop, or when the console shows a panic.

use std::cell::Cell;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::console::Console;

/// Returns whether the guest should be ended now; called several times per second. A signal handler
/// sets the flag that it reads.
pub type StopCheck<'a> = &'a dyn Fn() -> bool;

const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Time that a kernel needs to print the cause of a panic.
const LAST_LINES: Duration = Duration::from_secs(2);

/// The activity of a guest, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// From the start of QEMU to the first message of process 1.
    Boot,
    Run,
}

/// Reason why waiting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// The time for this phase is over.
    #[error("did not end within {limit:?}")]
    Deadline { phase: Phase, limit: Duration },
    /// The user requested the stop.
    #[error("stopped")]
    Stopped,
    /// The guest's kernel panicked or has no image, and did not power off.
    #[error("panic")]
    Lost,
}

pub struct Watch<'a> {
    asked: StopCheck<'a>,
    console: &'a Console,
    phase: Cell<(Phase, Option<Duration>, Instant)>,
    lost: Cell<Option<Instant>>,
}

/// A connection that fails to read when the watch ends.
pub struct Watched<'a> {
    stream: UnixStream,
    watch: &'a Watch<'a>,
    checked: Instant,
}

impl<'a> Watch<'a> {
    /// Creates a watch that begins with the boot.
    pub fn new(asked: StopCheck<'a>, console: &'a Console, boot: Duration) -> Self {
        Self {
            asked,
            console,
            phase: Cell::new((Phase::Boot, Some(boot), Instant::now())),
            lost: Cell::new(None),
        }
    }

    /// Begins a new phase with its own limit.
    pub fn begin(&self, phase: Phase, limit: Option<Duration>) {
        self.phase.set((phase, limit, Instant::now()));
    }

    /// Fails if waiting is pointless.
    pub fn check(&self) -> Result<(), Ended> {
        if (self.asked)() {
            return Err(Ended::Stopped);
        }
        let (phase, limit, since) = self.phase.get();
        if let Some(limit) = limit.filter(|limit| since.elapsed() >= *limit) {
            return Err(Ended::Deadline { phase, limit });
        }
        if self.console.is_lost() {
            let first = self.lost.get().unwrap_or_else(Instant::now);
            self.lost.set(Some(first));
            if first.elapsed() >= LAST_LINES {
                return Err(Ended::Lost);
            }
        }
        Ok(())
    }
}

impl<'a> Watched<'a> {
    /// Puts the connection under this watch.
    pub fn new(stream: UnixStream, watch: &'a Watch<'a>) -> io::Result<Self> {
        // The timeout lets the watch run between reads.
        stream.set_read_timeout(Some(LOOK_EVERY))?;
        Ok(Self { stream, watch, checked: Instant::now() })
    }

    /// Returns the same connection for writing.
    pub fn writer(&self, limit: Duration) -> io::Result<UnixStream> {
        let writer = self.stream.try_clone()?;
        writer.set_write_timeout(Some(limit))?;
        Ok(writer)
    }
}

impl Read for Watched<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            // A guest that never stops sending must not put this off.
            if self.checked.elapsed() >= LOOK_EVERY {
                self.watch.check().map_err(io::Error::other)?;
                self.checked = Instant::now();
            }
            match self.stream.read(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
    }
}

/// Returns the watch's reason from an error of a watched stream.
pub fn ended(error: &io::Error) -> Option<Ended> {
    error.get_ref()?.downcast_ref::<Ended>().copied()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_read_ends_at_the_deadline_with_the_phase() {
        let directory = tempfile::tempdir().unwrap();
        let console = Console::listen(&directory.path().join("console"), None).unwrap();
        let watch = Watch::new(&|| false, &console, Duration::from_secs(60));
        let limit = Duration::from_millis(30);
        watch.begin(Phase::Run, Some(limit));
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let error = Watched::new(ours, &watch).unwrap().read(&mut [0]).unwrap_err();
        let phase = Phase::Run;
        assert_eq!(ended(&error), Some(Ended::Deadline { phase, limit }));
    }

    /// Regression: while bytes kept arriving, neither the deadline nor the request to stop was
    /// checked.
    #[test]
    fn a_guest_that_never_stops_sending_ends_at_the_deadline_too() {
        let directory = tempfile::tempdir().unwrap();
        let console = Console::listen(&directory.path().join("console"), None).unwrap();
        let watch = Watch::new(&|| false, &console, Duration::from_millis(100));
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let guest = std::thread::spawn(move || while theirs.write_all(&[b'y'; 4096]).is_ok() {});
        let mut watched = Watched::new(ours, &watch).unwrap();
        let error = std::iter::from_fn(|| Some(watched.read(&mut [0; 64]))).find_map(Result::err);
        let is_deadline = |of| matches!(of, Ended::Deadline { phase: Phase::Boot, .. });
        assert!(error.as_ref().and_then(ended).is_some_and(is_deadline), "{error:?}");
        drop(watched);
        guest.join().unwrap();
    }

    #[test]
    fn a_read_ends_on_request() {
        let directory = tempfile::tempdir().unwrap();
        let console = Console::listen(&directory.path().join("console"), None).unwrap();
        let watch = Watch::new(&|| true, &console, Duration::from_secs(60));
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let error = Watched::new(ours, &watch).unwrap().read(&mut [0]).unwrap_err();
        assert_eq!(ended(&error), Some(Ended::Stopped));
    }
}
