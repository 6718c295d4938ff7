//! One access to each of a number of pages, none of which waits for another.

use crate::clock::{Clock, ClockError, Stamp, Ticks};
use crate::line::Line;
use core::hint::black_box;

/// Timed accesses, one to each page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageTimes {
    /// Total time of all accesses.
    pub ticks: Ticks,
    /// Number of pages accessed.
    pub pages: u64,
}

impl PageTimes {
    /// Times one pass of reads over the pages in `memory`, of `page_lines` lines each. The lines read
    /// are at different places in their pages, so that they spread over the sets of a cache. With more
    /// pages than a TLB holds, each read needs a page walk, and walks overlap as far as the core allows.
    ///
    /// # Errors
    /// [`ClockError::SteppedBack`] if the clock went backward.
    pub fn of_reads(memory: &[Line], page_lines: usize) -> Result<Self, ClockError> {
        let pages = memory.chunks_exact(page_lines.max(1));
        Self::of(pages.len(), || {
            let sum = pages.enumerate().fold(0_u64, |sum, (at, page)| {
                sum.wrapping_add(black_box(&page[at % page.len()]).first_word())
            });
            black_box(sum);
        })
    }

    /// Times loads of the first byte of each page in `memory`, in order.
    ///
    /// # Errors
    /// [`ClockError::SteppedBack`] if the clock went backward.
    pub fn of_loads(memory: &[u8], page_bytes: usize) -> Result<Self, ClockError> {
        let pages = memory.chunks_exact(page_bytes.max(1));
        Self::of(pages.len(), || pages.for_each(|page| _ = black_box(page[0])))
    }

    /// Times stores to the first byte of each page in `memory`, in order.
    ///
    /// # Errors
    /// [`ClockError::SteppedBack`] if the clock went backward.
    pub fn of_stores(memory: &mut [u8], page_bytes: usize) -> Result<Self, ClockError> {
        let pages = memory.chunks_exact_mut(page_bytes.max(1));
        Self::of(pages.len(), || pages.for_each(|page| *black_box(&mut page[0]) = 1))
    }

    #[inline(always)]
    fn of(pages: usize, accesses: impl FnOnce()) -> Result<Self, ClockError> {
        let start = Stamp::now();
        accesses();
        let ticks = Stamp::now().since(start)?;
        Ok(Self { ticks, pages: pages as u64 })
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
    fn whole_pages_are_read_and_a_rest_is_not() {
        let memory = vec![Line::ZERO; 64 * 9 + 5];
        assert_eq!(PageTimes::of_reads(&memory, 64).unwrap().pages, 9);
    }

    #[test]
    fn each_page_is_touched_once() {
        let mut memory = vec![0_u8; 4 * 16 + 3];
        assert_eq!(PageTimes::of_stores(&mut memory, 16).unwrap().pages, 4);
        assert_eq!(memory.iter().sum::<u8>(), 4);
        assert_eq!(PageTimes::of_loads(&memory, 16).unwrap().pages, 4);
    }
}
