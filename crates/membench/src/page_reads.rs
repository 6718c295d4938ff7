//! Reads of one line of each page, none of which waits for another.

use crate::clock::{Clock, ClockError, Stamp, Ticks};
use crate::line::Line;
use core::hint::black_box;

/// Timed reads of one line of each page. With more pages than a TLB holds, each read needs a page
/// walk, and walks overlap as far as the core allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageReads {
    /// Total time of all reads.
    pub ticks: Ticks,
    /// Number of pages read.
    pub pages: u64,
}

impl PageReads {
    /// Times one pass over the pages in `memory`, of `page_lines` lines each. The lines read are at
    /// different places in their pages, so that they spread over the sets of a cache.
    ///
    /// # Errors
    /// [`ClockError::SteppedBack`] if the clock went backward.
    pub fn window(memory: &[Line], page_lines: usize) -> Result<PageReads, ClockError> {
        let pages = memory.chunks_exact(page_lines.max(1));
        let count = pages.len() as u64;
        let start = Stamp::now();
        let sum = pages.enumerate().fold(0_u64, |sum, (at, page)| {
            sum.wrapping_add(black_box(&page[at % page.len()]).first_word())
        });
        black_box(sum);
        let ticks = Stamp::now().since(start)?;
        Ok(PageReads { ticks, pages: count })
    }

    /// Returns the mean time of one read.
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
        assert_eq!(PageReads::window(&memory, 64).unwrap().pages, 9);
    }
}
