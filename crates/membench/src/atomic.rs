//! Atomic additions to a line that is used by one core only.

use crate::clock::{Clock, ClockError, Stamp, Ticks};
use core::sync::atomic::{AtomicU64, Ordering};

/// Timed atomic additions, each of which waits for the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicAdds {
    /// Total time of all additions.
    pub ticks: Ticks,
    /// Number of additions.
    pub adds: u64,
}

impl AtomicAdds {
    /// Times `adds` additions of one to `word`, unordered with respect to other memory: on x86-64 a
    /// read-modify-write with the lock prefix, whatever the order.
    ///
    /// # Errors
    /// [`ClockError::SteppedBack`] if the clock went backward.
    pub fn window(word: &AtomicU64, adds: u64) -> Result<AtomicAdds, ClockError> {
        let start = Stamp::now();
        for _ in 0..adds {
            word.fetch_add(1, Ordering::Relaxed);
        }
        let ticks = Stamp::now().since(start)?;
        Ok(AtomicAdds { ticks, adds })
    }

    /// Returns the mean time of one addition.
    #[expect(clippy::cast_precision_loss, reason = "a count of additions is far below 2^53")]
    pub fn ns_per_add(&self, clock: &Clock) -> f64 {
        clock.ns(self.ticks) / self.adds as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_addition_is_performed() {
        let word = AtomicU64::new(5);
        let window = AtomicAdds::window(&word, 1000).unwrap();
        assert_eq!((word.into_inner(), window.adds), (1005, 1000));
    }
}
