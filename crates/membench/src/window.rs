//! One sample: a stretch of a walk with its duration.

use crate::clock::{Clock, Stamp, Ticks};

/// Consecutive loads of a walk with their total time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Start of the first load.
    pub start: Stamp,
    /// Total time of all loads.
    pub ticks: Ticks,
    /// Number of loads.
    pub loads: u64,
    /// Position of the walk after the last load, in bytes from the chase's first line.
    pub end_offset_bytes: usize,
}

impl Window {
    /// Returns the mean time of one load.
    #[expect(clippy::cast_precision_loss, reason = "a count of loads is far below 2^53")]
    pub fn ns_per_load(&self, clock: &Clock) -> f64 {
        clock.ns(self.ticks) / self.loads as f64
    }
}
