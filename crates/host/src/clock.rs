//! Clocks.

use core::fmt;
use std::time::SystemTime;

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

/// A time of the wall clock, for names and reports; never for durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UtcTime {
    /// Milliseconds since 1970-01-01 UTC.
    pub unix_ms: u64,
}

impl UtcTime {
    /// Returns the present time; a clock before 1970 gives 1970.
    pub fn now() -> Self {
        let since_epoch = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        Self { unix_ms: u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX) }
    }

    /// Formats the time for file names, in UTC: `20261121-024500`.
    pub fn compact(&self) -> String {
        let Civil { date, time } = self.civil();
        format!("{:04}{:02}{:02}-{:02}{:02}{:02}", date.0, date.1, date.2, time.0, time.1, time.2)
    }

    fn civil(self) -> Civil {
        let seconds = self.unix_ms / 1000;
        let second_of_day = seconds % 86_400;
        Civil {
            date: date_of_day(seconds / 86_400),
            time: (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60),
        }
    }
}

/// Formats the time as in RFC 3339: `2026-11-21T02:45:00Z`.
impl fmt::Display for UtcTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Civil { date, time } = self.civil();
        let (year, month, day) = date;
        let (hour, minute, second) = time;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// Year, month, day; hour, minute, second.
struct Civil {
    date: (u64, u64, u64),
    time: (u64, u64, u64),
}

/// Returns the Gregorian date of a day since 1970-01-01. Years are counted from March, so that the
/// leap day is the last of its year; 400 years are 146,097 days.
fn date_of_day(day: u64) -> (u64, u64, u64) {
    // Days from 0000-03-01 to 1970-01-01.
    let day = day + 719_468;
    let era = day / 146_097;
    let day_of_era = day % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // The months from March on repeat in groups of five with 153 days.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_as_its_utc_date() {
        // The values are those of `date -u -d @SECONDS`.
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_795_228_984, "2026-11-21T02:43:04Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            let unix_ms = seconds * 1000;
            assert_eq!(UtcTime { unix_ms }.to_string(), expected);
        }
    }

    #[test]
    fn the_compact_form_is_fit_for_a_file_name() {
        let time = UtcTime { unix_ms: 951_782_399_999 };
        assert_eq!(time.compact(), "20000228-235959");
    }

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
