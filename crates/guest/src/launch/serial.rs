//! Passes on a guest's serial output through a queue of limited size: a guest that prints faster
//! than its output is shown has to wait.

use std::collections::VecDeque;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of bytes that wait to be shown. It is large so that a guest never waits for its
/// port, and its virtual time does not depend on the host's load.
pub const MOST_BYTES: usize = 4 << 20;

/// Returns both ends of a queue.
pub fn serial() -> (SerialWriter, SerialReader) {
    let queue = Arc::new(Queue::default());
    (SerialWriter(Arc::clone(&queue)), SerialReader(queue))
}

/// The end that the guest's output enters.
#[derive(Clone, Debug)]
pub struct SerialWriter(Arc<Queue>);

/// The receiving end of a serial port, for display.
#[derive(Debug)]
pub struct SerialReader(Arc<Queue>);

#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    parts: VecDeque<Vec<u8>>,
    bytes: usize,
    /// True once QEMU has ended: the rest of its pipe is read without a limit.
    is_last: bool,
    has_no_writer: bool,
    has_no_reader: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // A poisoned lock is safe to use: no change below can be left half done by a panic.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SerialWriter {
    /// Adds output, after waiting for room; drops it if there is no reader any more.
    pub fn add(&self, part: &[u8]) {
        let mut waiting = self.0.lock();
        while waiting.bytes >= MOST_BYTES && !waiting.is_last && !waiting.has_no_reader {
            waiting = self.0.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        if !waiting.has_no_reader {
            waiting.bytes += part.len();
            waiting.parts.push_back(part.to_vec());
            self.0.changed.notify_all();
        }
    }

    /// Lifts the limit of the queue once QEMU has ended and only the rest of its pipe follows.
    pub fn is_last(&self) {
        self.0.lock().is_last = true;
        self.0.changed.notify_all();
    }

    /// Ends the output.
    pub fn close(&self) {
        self.0.lock().has_no_writer = true;
        self.0.changed.notify_all();
    }
}

impl SerialReader {
    /// Waits for output.
    ///
    /// # Errors
    /// [`RecvTimeoutError`] if there was none in time, or there is no more to come.
    pub fn next_within(&self, limit: Duration) -> Result<Vec<u8>, RecvTimeoutError> {
        let begun = Instant::now();
        let mut waiting = self.0.lock();
        loop {
            if let Some(part) = waiting.parts.pop_front() {
                waiting.bytes -= part.len();
                self.0.changed.notify_all();
                return Ok(part);
            }
            if waiting.has_no_writer {
                return Err(RecvTimeoutError::Disconnected);
            }
            let left = limit.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(RecvTimeoutError::Timeout);
            }
            let waited = self.0.changed.wait_timeout(waiting, left);
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns the queued output, part by part.
    pub fn rest(&self) -> impl Iterator<Item = Vec<u8>> {
        std::iter::from_fn(|| self.next_within(Duration::ZERO).ok())
    }
}

impl Drop for SerialReader {
    fn drop(&mut self) {
        let mut waiting = self.0.lock();
        waiting.has_no_reader = true;
        waiting.parts.clear();
        self.0.changed.notify_all();
    }
}
