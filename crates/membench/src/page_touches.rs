//! First touches of pages.

use crate::clock::{Clock, ClockError, Stamp, Ticks};
use core::hint::black_box;

/// Timed touches of one byte of each page, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageTouches {
    /// Total time of all touches.
    pub ticks: Ticks,
    /// Number of pages touched.
    pub pages: u64,
}

impl PageTouches {
    /// Times loads from the pages of `memory`.
    ///
    /// # Errors
    /// [`ClockError::SteppedBack`] if the clock went backward.
    pub fn loads(memory: &[u8], page_bytes: usize) -> Result<Self, ClockError> {
        let pages = memory.chunks_exact(page_bytes.max(1));
        let count = pages.len() as u64;
        let start = Stamp::now();
        pages.for_each(|page| _ = black_box(page[0]));
        Ok(Self { ticks: Stamp::now().since(start)?, pages: count })
    }

    /// Times stores to the pages of `memory`.
    ///
    /// # Errors
    /// [`ClockError::SteppedBack`] if the clock went backward.
    pub fn stores(memory: &mut [u8], page_bytes: usize) -> Result<Self, ClockError> {
        let pages = memory.chunks_exact_mut(page_bytes.max(1));
        let count = pages.len() as u64;
        let start = Stamp::now();
        pages.for_each(|page| *black_box(&mut page[0]) = 1);
        Ok(Self { ticks: Stamp::now().since(start)?, pages: count })
    }

    /// Returns the mean time of a page.
    #[expect(clippy::cast_precision_loss, reason = "a count of pages is far below 2^53")]
    pub fn ns_per_page(&self, clock: &Clock) -> f64 {
        clock.ns(self.ticks) / self.pages as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    #[test]
    fn each_page_is_touched_once() {
        let mut memory = vec![0_u8; 4 * 16 + 3];
        assert_eq!(PageTouches::stores(&mut memory, 16).unwrap().pages, 4);
        assert_eq!(memory.iter().sum::<u8>(), 4);
        assert_eq!(PageTouches::loads(&memory, 16).unwrap().pages, 4);
    }
}
