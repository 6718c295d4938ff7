//! Pipes between the processes of a program: the times at which their bytes were written and read. A
//! reader waits for a write in the machine's time, and a writer for room. Each pipe has a file next to
//! the report, as in [`super::family`].

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Calls that a pipe remembers; what they moved is mostly read when they are forgotten.
const MOST: usize = 64;
/// The time that a writer waits on the host until the reader that made room has recorded it: short,
/// unless the reader is outside the emulation.
const PATIENCE: Duration = Duration::from_millis(20);
const PAUSE: Duration = Duration::from_micros(50);

/// A pipe that a call uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipe {
    pub inode: u64,
    /// Bytes that it holds at most.
    pub capacity: u64,
}

/// The end of a call's bytes among all that passed, and the time at which they were there, in ps.
type Stamp = (u64, u64);

/// The calls that used one direction of a pipe.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Side {
    bytes: u64,
    stamps: VecDeque<Stamp>,
}

impl Side {
    fn moves(&mut self, bytes: u64, at_ps: u64) {
        self.bytes += bytes;
        self.stamps.push_back((self.bytes, at_ps));
        if self.stamps.len() > MOST {
            self.stamps.pop_front();
        }
    }

    /// Returns the time at which this number of bytes had passed; 0 if that is not known.
    fn passed_ps(&self, bytes: u64) -> u64 {
        let stamp = self.stamps.iter().find(|(end, _)| *end >= bytes && bytes > 0);
        stamp.map_or(0, |(_, at_ps)| *at_ps)
    }
}

/// The state of a pipe.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Times {
    written: Side,
    read: Side,
    /// True if no process of the program reads it, as far as is known.
    is_read_outside: bool,
}

impl Times {
    /// Returns the time at which this number of bytes has been written: a write that found the pipe
    /// full went on when there was room again.
    fn arrived_ps(&self, bytes: u64, capacity: u64, wake_ps: u64) -> u64 {
        let began_ps = self.written.passed_ps(bytes);
        let room_ps = self.read.passed_ps(bytes.saturating_sub(capacity));
        if room_ps > began_ps { room_ps + wake_ps } else { began_ps }
    }
}

impl Pipe {
    /// Records that a thread begins to write bytes that are there at `ready_ps`.
    pub fn writes(self, report: Option<&str>, bytes: u64, ready_ps: u64) {
        self.with(report, |times| times.written.moves(bytes, ready_ps));
    }

    /// Ends a write of this number of bytes, of which only some may have been written; returns the time
    /// at which the writer was woken if it had to wait for room, else `now_ps`.
    pub fn wrote(
        self,
        report: Option<&str>,
        (asked, written): (u64, u64),
        now_ps: u64,
        wake_ps: u64,
    ) -> u64 {
        let began = Instant::now();
        loop {
            let found = self.with(report, |times| {
                let end = times.written.bytes.saturating_sub(asked - written);
                let needed = end.saturating_sub(self.capacity);
                let is_known = times.read.bytes >= needed || times.is_read_outside;
                times.is_read_outside |= began.elapsed() > PATIENCE && !is_known;
                if is_known || times.is_read_outside {
                    times.written.bytes = end;
                }
                is_known.then(|| times.read.passed_ps(needed))
            });
            match found {
                Some(Some(room_ps)) if room_ps > now_ps => return room_ps + wake_ps,
                Some(None) if began.elapsed() < 2 * PATIENCE => thread::sleep(PAUSE),
                _ => return now_ps,
            }
        }
    }

    /// Ends a read of this number of bytes, which itself takes `takes_ps`; returns the time at which the
    /// reader was woken if it had to wait for them, else `now_ps`.
    pub fn read(
        self,
        report: Option<&str>,
        bytes: u64,
        (now_ps, wake_ps, takes_ps): (u64, u64, u64),
    ) -> u64 {
        let goes_on = self.with(report, |times| {
            let before = times.read.bytes;
            let first_ps = times.arrived_ps(before + 1, self.capacity, wake_ps);
            let last_ps = times.arrived_ps(before + bytes, self.capacity, wake_ps);
            let woken_ps = if first_ps > now_ps { first_ps + wake_ps } else { now_ps };
            let goes_on_ps = woken_ps.max(last_ps);
            times.read.moves(bytes, goes_on_ps + takes_ps);
            times.is_read_outside = false;
            goes_on_ps
        });
        goes_on.unwrap_or(now_ps)
    }

    /// Changes the state of the pipe; `None` without a file for it.
    fn with<T>(self, report: Option<&str>, changes: impl FnOnce(&mut Times) -> T) -> Option<T> {
        let path = format!("{}.{}.pipe", report?, self.inode);
        let changed = || -> io::Result<T> {
            let mut options = File::options();
            let mut file =
                options.read(true).write(true).create(true).truncate(false).open(path)?;
            file.lock()?;
            let mut text = Vec::new();
            file.read_to_end(&mut text)?;
            // Empty when it is new.
            let mut times: Times = serde_json::from_slice(&text).unwrap_or_default();
            let result = changes(&mut times);
            let text = serde_json::to_vec(&times)?;
            file.rewind()?;
            file.write_all(&text)?;
            file.set_len(text.len() as u64)?;
            Ok(result)
        };
        changed().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: u64 = 100;
    const WAKE_PS: u64 = 20_000;
    const TAKES_PS: u64 = 1_000;

    /// Returns a pipe of 100 bytes, and the report that its file is next to.
    fn pipe() -> (Pipe, String, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let report = directory.path().join("report").to_string_lossy().into_owned();
        (Pipe { inode: 7, capacity: FULL }, report, directory)
    }

    #[test]
    fn a_reader_that_was_early_is_woken_by_the_write_and_one_that_is_late_goes_on() {
        let (pipe, report, _directory) = pipe();
        let report = Some(report.as_str());
        let read = |bytes, now_ps| pipe.read(report, bytes, (now_ps, WAKE_PS, TAKES_PS));
        pipe.writes(report, 10, 500_000);
        pipe.writes(report, 10, 600_000);
        assert_eq!(read(10, 400_000), 500_000 + WAKE_PS);
        assert_eq!(read(10, 700_000), 700_000);
        assert_eq!(read(10, 800_000), 800_000, "written by another program");
        assert_eq!(pipe.read(None, 10, (7, WAKE_PS, TAKES_PS)), 7);
    }

    #[test]
    fn a_writer_waits_until_a_read_makes_room() {
        let (pipe, report, _directory) = pipe();
        let report = Some(report.as_str());
        pipe.writes(report, FULL, 100_000);
        assert_eq!(pipe.wrote(report, (FULL, FULL), 90_000, WAKE_PS), 90_000);
        pipe.writes(report, FULL, 110_000);
        assert_eq!(pipe.read(report, FULL, (300_000, WAKE_PS, TAKES_PS)), 300_000);
        let room_ps = 300_000 + TAKES_PS;
        assert_eq!(pipe.wrote(report, (FULL, FULL), 105_000, WAKE_PS), room_ps + WAKE_PS);
        let next_ps = pipe.read(report, FULL, (302_000, WAKE_PS, TAKES_PS));
        assert_eq!(next_ps, room_ps + 2 * WAKE_PS, "both were asleep");
    }

    #[test]
    fn a_writer_does_not_wait_long_for_a_reader_outside_the_emulation() {
        let (pipe, report, _directory) = pipe();
        let report = Some(report.as_str());
        let began = Instant::now();
        for _ in 0..20 {
            pipe.writes(report, FULL, 100_000);
            assert_eq!(pipe.wrote(report, (FULL, FULL), 90_000, WAKE_PS), 90_000);
        }
        assert!(began.elapsed() < 10 * PATIENCE);
    }
}
