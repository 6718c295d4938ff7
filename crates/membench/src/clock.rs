//! Time in ticks of the cpu's counter, and the counter's rate against a clock of the caller.
#![expect(missing_docs, reason = "fields of errors that their names explain")]

use crate::arch;
use core::fmt;
use numalab_marks::virtual_time;

/// A moment: the cpu's time stamp counter (x86-64) or generic timer (aarch64), or the
/// vCPU's own time in an emulated machine ([`numalab_marks::virtual_time`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(u64);

impl Stamp {
    /// Returns the moment after everything before this call has executed, and before anything after
    /// it starts.
    #[inline]
    pub fn now() -> Stamp {
        Stamp(virtual_time::now_ns().unwrap_or_else(arch::timestamp))
    }

    /// Returns the moment in ticks of the counter that all cpus of a host share, for other
    /// processes of the host.
    pub fn ticks(self) -> u64 {
        self.0
    }

    /// Returns the moment that another process of this host reported.
    pub fn from_ticks(ticks: u64) -> Stamp {
        Stamp(ticks)
    }

    /// Returns the time from `earlier` to this moment.
    ///
    /// # Errors
    /// [`ClockError::SteppedBack`] if `earlier` is later.
    pub fn since(self, earlier: Stamp) -> Result<Ticks, ClockError> {
        self.0.checked_sub(earlier.0).map(Ticks).ok_or(ClockError::SteppedBack {
            unit: "ticks",
            from: earlier.0,
            to: self.0,
        })
    }
}

/// A duration in ticks of the counter, which are not core cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticks(pub u64);

impl fmt::Display for Ticks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ticks", self.0)
    }
}

/// The counter's rate, measured against a clock in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    ticks_per_ns: f64,
    overhead: Ticks,
    invariant: bool,
}

impl Clock {
    /// Measures the counter's rate against `now_ns` for `for_ns` nanoseconds of that clock (20 ms
    /// give five digits).
    ///
    /// # Errors
    /// [`ClockError::SteppedBack`] if either clock went backward, [`ClockError::Inconsistent`] if
    /// their ratio differs by more than 0.1 % between the two halves, three times in a row (one of
    /// them steps repeatedly, or runs unevenly), and [`ClockError::Stopped`] if one does not
    /// advance.
    pub fn calibrate(now_ns: impl FnMut() -> u64, for_ns: u64) -> Result<Clock, ClockError> {
        if virtual_time::in_use() {
            let overhead = least_overhead()?;
            return Ok(Clock { ticks_per_ns: 1.0, overhead, invariant: true });
        }
        let ticks_per_ns = Pair { stamp: Stamp::now, now_ns }.even_ticks_per_ns(for_ns)?;
        Ok(Clock {
            ticks_per_ns,
            overhead: least_overhead()?,
            invariant: arch::timestamp_is_invariant(),
        })
    }

    /// Converts `ticks` to nanoseconds.
    #[expect(clippy::cast_precision_loss, reason = "2^53 ticks are weeks")]
    pub fn ns(&self, ticks: Ticks) -> f64 {
        ticks.0 as f64 / self.ticks_per_ns
    }

    /// Returns the counter's rate.
    pub fn ticks_per_ns(&self) -> f64 {
        self.ticks_per_ns
    }

    /// Returns the least time between two consecutive [`Stamp`]s: the part of a window's duration
    /// that is not spent on its loads.
    pub fn overhead(&self) -> Ticks {
        self.overhead
    }

    /// Returns true if the counter is documented to run at one rate whatever the core does. If not,
    /// times are doubtful and the record should say so.
    pub fn is_invariant(&self) -> bool {
        self.invariant
    }
}

/// Reasons why a clock cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ClockError {
    /// A later reading was below an earlier one.
    #[error("the clock went back from {from} to {to} {unit}; expected one that only advances")]
    SteppedBack { unit: &'static str, from: u64, to: u64 },
    /// The counter and the caller's clock disagree on how much time passed.
    #[error(
        "the cpu's counter ran at {first_ticks_per_ns} ticks per ns, then at \
         {second_ticks_per_ns}; expected the same rate within 0.1 %"
    )]
    Inconsistent {
        first_ticks_per_ns: f64,
        /// Rate in the second half.
        second_ticks_per_ns: f64,
    },
    /// A clock did not advance.
    #[error("the clock did not advance from {at} {unit} over {readings} readings")]
    Stopped { unit: &'static str, at: u64, readings: u32 },
}

/// The number of readings that may show the same nanosecond before the clock counts as stopped.
/// Coarse clocks advance every few milliseconds, which are some 100,000 readings.
const READINGS_UNTIL_STOPPED: u32 = 20_000_000;
/// The relative difference between the rates of the two halves that is attributed to a step.
const RATE_TOLERANCE: f64 = 1e-3;
/// The number of consecutive calibrations with different halves before the clock is refused. The
/// clocks of an emulated machine occasionally diverge by some 10 us (once in 800 calibrations in
/// QEMU under TCG on a busy host).
const CALIBRATIONS: usize = 3;
/// The number of readings; the one within the shortest interval is used, so that an interrupt does
/// not spoil the rate.
const ATTEMPTS: usize = 16;

struct Pair<S, N> {
    stamp: S,
    now_ns: N,
}

impl<S: FnMut() -> Stamp, N: FnMut() -> u64> Pair<S, N> {
    /// Returns the rate of the first calibration with halves that agree.
    fn even_ticks_per_ns(&mut self, for_ns: u64) -> Result<f64, ClockError> {
        for _ in 1..CALIBRATIONS {
            match self.ticks_per_ns(for_ns) {
                Err(ClockError::Inconsistent { .. }) => {}
                other => return other,
            }
        }
        self.ticks_per_ns(for_ns)
    }

    fn ticks_per_ns(&mut self, for_ns: u64) -> Result<f64, ClockError> {
        let start = self.reading()?;
        let middle = self.reading_at(start.ns.saturating_add(for_ns / 2))?;
        let end = self.reading_at(middle.ns.saturating_add(for_ns / 2))?;
        let first_ticks_per_ns = rate(start, middle)?;
        let second_ticks_per_ns = rate(middle, end)?;
        if (first_ticks_per_ns / second_ticks_per_ns - 1.0).abs() > RATE_TOLERANCE {
            return Err(ClockError::Inconsistent { first_ticks_per_ns, second_ticks_per_ns });
        }
        rate(start, end)
    }

    /// Waits until the caller's clock has passed `ns`, then reads both.
    fn reading_at(&mut self, ns: u64) -> Result<ClockReading, ClockError> {
        let mut last = (self.now_ns)();
        let mut readings = 0;
        while last <= ns {
            let now = (self.now_ns)();
            if now < last {
                return Err(ClockError::SteppedBack { unit: "ns", from: last, to: now });
            }
            readings = if now == last { readings + 1 } else { 0 };
            if readings == READINGS_UNTIL_STOPPED {
                return Err(ClockError::Stopped { unit: "ns", at: now, readings });
            }
            last = now;
        }
        self.reading()
    }

    /// Reads both clocks at one moment: the tightest of several attempts.
    fn reading(&mut self) -> Result<ClockReading, ClockError> {
        let mut last = self.attempt()?;
        let mut best = last;
        for _ in 1..ATTEMPTS {
            let next = self.attempt()?;
            if next.ns < last.ns {
                return Err(ClockError::SteppedBack { unit: "ns", from: last.ns, to: next.ns });
            }
            last = next;
            if next.width < best.width {
                best = next;
            }
        }
        Ok(best)
    }

    fn attempt(&mut self) -> Result<ClockReading, ClockError> {
        let before = (self.stamp)();
        let ns = (self.now_ns)();
        let width = (self.stamp)().since(before)?;
        Ok(ClockReading { stamp: Stamp(before.0 + width.0 / 2), ns, width })
    }
}

#[derive(Clone, Copy)]
struct ClockReading {
    stamp: Stamp,
    ns: u64,
    /// The largest possible time between the two readings.
    width: Ticks,
}

#[expect(clippy::cast_precision_loss, reason = "2^53 ticks are weeks")]
fn rate(from: ClockReading, to: ClockReading) -> Result<f64, ClockError> {
    let ticks = to.stamp.since(from.stamp)?;
    let ns = to.ns.checked_sub(from.ns).ok_or(ClockError::SteppedBack {
        unit: "ns",
        from: from.ns,
        to: to.ns,
    })?;
    if ticks.0 == 0 {
        return Err(ClockError::Stopped { unit: "ticks", at: to.stamp.0, readings: 2 });
    }
    if ns == 0 {
        return Err(ClockError::Stopped { unit: "ns", at: to.ns, readings: 2 });
    }
    Ok(ticks.0 as f64 / ns as f64)
}

fn least_overhead() -> Result<Ticks, ClockError> {
    let mut least = Ticks(u64::MAX);
    for _ in 0..256 {
        let start = Stamp::now();
        least = least.min(Stamp::now().since(start)?);
    }
    Ok(least)
}

#[cfg(test)]
mod tests;
