//! Clocks.

use core::fmt;
use std::time::SystemTime;

use numalab_record::Civil;
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::syscall::children_usage;

/// Reads `CLOCK_MONOTONIC_RAW` in nanoseconds. NTP neither slews nor steps it, so cycle counters
/// are calibrated against it.
pub fn monotonic_raw_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::MonotonicRaw))
}

/// Reads `CLOCK_MONOTONIC` in nanoseconds, the clock of performance event timestamps.
pub fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// Returns the cpu time of the calling thread, in nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// Returns the cpu time of all threads of this process, in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ProcessCPUTime))
}

/// Returns the cpu time of all threads of a process, including those that have ended, in
/// nanoseconds; `None` if the process does not exist.
pub fn cpu_ns_of(process: u32) -> Option<u64> {
    crate::syscall::cpu_time(process).map(nanoseconds)
}

/// Returns the cpu time of the children that this process has waited for, and of theirs, in
/// nanoseconds; its resolution is that of the kernel's accounting.
pub fn children_cpu_ns() -> u64 {
    let usage = children_usage();
    let microseconds = |time: libc::timeval| {
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let rest = u64::try_from(time.tv_usec).unwrap_or(0);
        seconds.saturating_mul(1_000_000).saturating_add(rest)
    };
    (microseconds(usage.ru_utime) + microseconds(usage.ru_stime)).saturating_mul(1000)
}

/// Converts to nanoseconds; 64 bits hold 584 years, and none of the clocks used is negative.
fn nanoseconds(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}

/// Returns the time of the wall clock, in nanoseconds since 1970, by which processes in several
/// guests agree on a moment.
pub fn unix_ns() -> u64 {
    let since_epoch = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX)
}

/// A time of the wall clock, for names and reports; never for durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UtcTime {
    /// Milliseconds since 1970-01-01 UTC.
    pub unix_ms: u64,
}

impl UtcTime {
    /// Returns the current time; a clock before 1970 gives 1970.
    pub fn now() -> Self {
        Self { unix_ms: unix_ns() / 1_000_000 }
    }

    /// Formats the time for file names, in UTC: `20261121-024500`.
    pub fn compact(&self) -> String {
        Civil::of(self.unix_ms).compact()
    }
}

/// Formats the time as in RFC 3339: `2026-11-21T02:45:00Z`.
impl fmt::Display for UtcTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Civil::of(self.unix_ms).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_beyond_all_processes_has_no_cpu_time() {
        // Regression: shifted to a clock id, the first number means the calling process.
        for process in [1 << 29, 1 << 28, u32::MAX] {
            assert_eq!(cpu_ns_of(process), None, "{process}");
        }
    }

    #[test]
    fn the_cpu_time_of_a_process_agrees_with_its_own_clock() {
        let busy = std::hint::black_box((0..1_000_000_u64).fold(0, |sum, at| sum ^ (at * at)));
        let (before, reported, after) =
            (process_cpu_ns(), cpu_ns_of(std::process::id()), process_cpu_ns());
        assert!(
            (before..=after).contains(&reported.unwrap()),
            "{before} {reported:?} {after} {busy}"
        );
        assert_eq!(cpu_ns_of(u32::MAX), None);
    }

    #[test]
    fn the_raw_clock_advances() {
        let earlier = monotonic_raw_ns();
        while monotonic_raw_ns() == earlier {}
        assert!(monotonic_raw_ns() > earlier);
    }
}
