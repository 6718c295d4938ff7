//! Times from the time stamp counter.

use ostd::arch::{read_tsc, tsc_freq};

/// A point in time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    /// Returns the current time.
    pub fn now() -> Self {
        Self(read_tsc())
    }

    /// Returns the nanoseconds from an earlier point to this one.
    pub fn since_ns(self, earlier: Self) -> f64 {
        self.0.saturating_sub(earlier.0) as f64 * 1e9 / tsc_freq().max(1) as f64
    }
}

/// Returns the nanoseconds of one of `count` runs of `what`.
pub fn each_ns(count: u64, what: impl FnOnce()) -> f64 {
    let start = Moment::now();
    what();
    Moment::now().since_ns(start) / count.max(1) as f64
}
