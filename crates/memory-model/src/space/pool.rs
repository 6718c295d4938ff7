//! The free frames of a node.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use super::{HUGE_PAGES, PAGE_BYTES};

const HUGE_BYTES: u64 = HUGE_PAGES * PAGE_BYTES;

#[derive(Debug)]
pub(super) struct Pool {
    /// Frames that have never been allocated.
    ranges: Vec<Range<u64>>,
    /// Frames that were freed, by the 2 MiB around them.
    freed: BTreeMap<u64, Vec<u64>>,
}

impl Pool {
    /// Creates a pool of all frames in these ranges of addresses.
    pub(super) fn new(ranges: &[(u64, u64)]) -> Self {
        let ranges = ranges.iter().map(|&(start, end)| start..end).collect();
        Self { ranges, freed: BTreeMap::new() }
    }

    /// Allocates one frame, or the first one of a huge page.
    pub(super) fn take(&mut self, huge: bool) -> Option<u64> {
        if huge { self.take_huge() } else { self.take_small() }
    }

    pub(super) fn free(&mut self, frame: u64) {
        self.freed.entry(frame / HUGE_BYTES).or_default().push(frame);
    }

    fn take_small(&mut self) -> Option<u64> {
        if let Some(mut freed) = self.freed.last_entry() {
            let frame = freed.get_mut().pop();
            if freed.get().is_empty() {
                freed.remove();
            }
            return frame;
        }
        let range = self.ranges.iter_mut().find(|range| range.end - range.start >= PAGE_BYTES)?;
        let frame = range.start;
        range.start += PAGE_BYTES;
        Some(frame)
    }

    fn take_huge(&mut self) -> Option<u64> {
        let whole = self.freed.iter().find(|(_, frames)| frames.len() as u64 == HUGE_PAGES);
        if let Some(&block) = whole.map(|(block, _)| block) {
            self.freed.remove(&block);
            return Some(block * HUGE_BYTES);
        }
        let begin = |range: &Range<u64>| range.start.next_multiple_of(HUGE_BYTES);
        let mut ranges = self.ranges.iter_mut();
        let range = ranges.find(|range| begin(range) + HUGE_BYTES <= range.end)?;
        let (passed, frame) = (range.start, begin(range));
        range.start = frame + HUGE_BYTES;
        let numbers = passed / PAGE_BYTES..frame / PAGE_BYTES;
        numbers.for_each(|number| self.free(number * PAGE_BYTES));
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_page_is_contiguous_and_aligned_and_frames_before_it_are_not_lost() {
        let mut pool = Pool::new(&[(PAGE_BYTES, 3 * HUGE_BYTES)]);
        assert_eq!(pool.take(true), Some(HUGE_BYTES));
        assert_eq!(pool.take(true), Some(2 * HUGE_BYTES));
        assert_eq!(pool.take(true), None);
        let small: Vec<u64> = core::iter::from_fn(|| pool.take(false)).collect();
        assert_eq!(small.len() as u64, HUGE_PAGES - 1);
        assert!(small.iter().all(|frame| (PAGE_BYTES..HUGE_BYTES).contains(frame)));
    }

    #[test]
    fn a_huge_page_freed_piece_by_piece_is_whole_again() {
        let mut pool = Pool::new(&[(0, HUGE_BYTES)]);
        assert_eq!(pool.take(true), Some(0));
        (1..HUGE_PAGES).for_each(|at| pool.free(at * PAGE_BYTES));
        assert_eq!(pool.take(true), None, "somebody has one piece");
        pool.free(0);
        assert_eq!(pool.take(true), Some(0));
    }
}
