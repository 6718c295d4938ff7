//! One sample: a stretch of a walk with the time it took.

use crate::clock::{Clock, Stamp, Ticks};

/// Consecutive loads of a walk and the time they took together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// When the first load started.
    pub start: Stamp,
    /// How long all loads took.
    pub ticks: Ticks,
    /// How many loads.
    pub loads: u64,
    /// Where the walk stood after the last load, in bytes from the chase's first line.
    pub end_offset_bytes: usize,
}

impl Window {
    /// The mean time of one load.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a count of loads is far below 2^53")]
    pub fn ns_per_load(&self, clock: &Clock) -> f64 {
        clock.ns(self.ticks) / self.loads as f64
    }
}
