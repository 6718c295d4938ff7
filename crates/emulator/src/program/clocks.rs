//! The clocks that a program reads (clock_gettime(2)) show the emulated machine's time, not the
//! host's, on which the program takes much longer.

use std::array;

/// The cpu-time clocks of a process and of a thread.
const PROCESS: u64 = 2;
const THREAD: u64 = 3;
/// Clocks with fixed ids; others are of descriptors and other processes.
const CLOCKS: usize = 12;
pub const NS_PER_S: i64 = 1_000_000_000;

/// Busy times, in ns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Busy {
    /// Busy time of the calling thread.
    pub thread_ns: u64,
    /// Busy time of the whole process.
    pub process_ns: u64,
}

#[derive(Debug)]
pub struct Clocks {
    /// The host clocks' values when the program began.
    began_ns: [Option<i64>; CLOCKS],
}

impl Clocks {
    /// Starts the clocks now.
    pub fn new() -> Self {
        Self { began_ns: array::from_fn(host_ns) }
    }

    /// Returns a clock's value when this time has passed since the program began.
    pub fn shows_ns(&self, clock: u64, passed_ns: u64, busy: Busy) -> Option<i64> {
        let signed = |ns: u64| i64::try_from(ns).ok();
        match clock {
            PROCESS => signed(busy.process_ns),
            THREAD => signed(busy.thread_ns),
            _ => Some(self.began(clock)?.saturating_add(signed(passed_ns)?)),
        }
    }

    /// Returns the time since the program's start at which a clock shows this value.
    pub fn passed_ns(&self, clock: u64, shows_ns: i64) -> Option<u64> {
        let passed_ns = shows_ns.saturating_sub(self.began(clock)?);
        Some(u64::try_from(passed_ns).unwrap_or(0))
    }

    fn began(&self, clock: u64) -> Option<i64> {
        self.began_ns.get(usize::try_from(clock).ok()?).copied().flatten()
    }
}

fn host_ns(clock: usize) -> Option<i64> {
    let mut shows = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `shows` lives during the call.
    let failed = unsafe { libc::clock_gettime(i32::try_from(clock).ok()?, &raw mut shows) };
    (failed == 0).then(|| shows.tv_sec.saturating_mul(NS_PER_S).saturating_add(shows.tv_nsec))
}

/// Splits ns into seconds and a rest in units of 1/`per_second`.
pub fn seconds(ns: i64, per_second: i64) -> [i64; 2] {
    // Euclidean: the kernel gives a rest of 0 or more before 1970, too.
    [ns.div_euclid(NS_PER_S), ns.rem_euclid(NS_PER_S) / (NS_PER_S / per_second)]
}

/// Returns the ns of seconds and a rest in units of 1/`per_second`.
pub fn nanoseconds([seconds, rest]: [i64; 2], per_second: i64) -> i64 {
    seconds.saturating_mul(NS_PER_S).saturating_add(rest.saturating_mul(NS_PER_S / per_second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_advance_by_the_machines_time() {
        let clocks = Clocks::new();
        let busy = Busy { thread_ns: 7, process_ns: 20 };
        let shows = |clock, passed_ns| clocks.shows_ns(clock, passed_ns, busy).unwrap();
        for clock in [0, 1, 7] {
            assert_eq!(shows(clock, 5_000) - shows(clock, 2_000), 3_000);
            assert_eq!(clocks.passed_ns(clock, shows(clock, 5_000)), Some(5_000));
        }
        assert_eq!((shows(PROCESS, 99), shows(THREAD, 99)), (20, 7));
        assert_eq!(clocks.shows_ns(u64::MAX, 0, busy), None, "that of another process");
        assert_eq!(clocks.passed_ns(0, 0), Some(0), "before it began");
    }

    #[test]
    fn times_are_split_as_the_system_splits_them() {
        assert_eq!(seconds(3_000_004_000, 1_000_000), [3, 4]);
        assert_eq!(seconds(-1, NS_PER_S), [-1, 999_999_999]);
        assert_eq!(nanoseconds([3, 4], 1_000), 3_004_000_000);
    }
}
