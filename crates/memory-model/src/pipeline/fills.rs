//! Lines on their way to a core, each in one of its fill buffers.

use alloc::vec::Vec;

use super::combining::Combining;
use crate::counters::Kind;

/// A line on its way.
#[derive(Clone, Copy, Debug)]
struct Fill {
    line: u64,
    /// When it has a fill buffer, and when it is there.
    begin_ps: u64,
    done_ps: u64,
}

/// The lines on their way, some of which may yet have to wait for a buffer.
#[derive(Debug, Default)]
pub struct Fills {
    all: Vec<Fill>,
    /// A bit for each of their lines, which others share.
    lines: u64,
    /// When the last of them is there.
    latest_ps: u64,
    /// Time from one line to the next, read and written, and when the next one can begin.
    each_ps: [u64; 2],
    next_ps: u64,
}

/// A line's bit of 64.
#[inline]
fn bit(line: u64) -> u64 {
    1 << (line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58)
}

impl Fills {
    /// Creates an empty one, with so long from one line that is read to the next, and from one that
    /// is written, which goes back as well.
    pub fn new(each_ps: [u64; 2]) -> Self {
        Self { each_ps, ..Self::default() }
    }

    /// Whether none is on its way at this time.
    #[inline]
    pub fn is_idle(&self, now_ps: u64) -> bool {
        self.latest_ps <= now_ps
    }

    /// When a line is there that is on its way already.
    #[inline]
    pub fn under_way_ps(&self, line: u64, now_ps: u64) -> Option<u64> {
        if self.is_idle(now_ps) || self.lines & bit(line) == 0 {
            return None;
        }
        let mut fills = self.all.iter().filter(|fill| fill.line == line && fill.done_ps > now_ps);
        fills.next().map(|fill| fill.done_ps)
    }

    /// A line is on its way.
    pub fn add(&mut self, line: u64, (begin_ps, done_ps): (u64, u64)) {
        self.all.push(Fill { line, begin_ps, done_ps });
        self.lines |= bit(line);
        self.latest_ps = self.latest_ps.max(done_ps);
    }

    /// Nothing begins any more before a time.
    fn forget_before(&mut self, now_ps: u64) {
        self.all.retain(|fill| fill.done_ps > now_ps);
        self.lines = self.all.iter().fold(0, |all, fill| all | bit(fill.line));
    }

    /// When one more finds a buffer, of so many for these lines and those that are written, that could begin at
    /// `issue_ps`; nothing begins any more before `now_ps`.
    pub fn room_ps(
        &mut self,
        (most, writes, kind): (u32, &mut Combining, Kind),
        (now_ps, issue_ps): (u64, u64),
    ) -> u64 {
        self.forget_before(now_ps);
        writes.forget_before(now_ps);
        // One whose address is known late is let through then, in place of one that comes now.
        let next_ps = self.next_ps.max(now_ps);
        self.next_ps = next_ps + self.each_ps[kind as usize];
        let mut begins_ps = issue_ps.max(next_ps);
        loop {
            let here = self.all.iter().filter(|fill| fill.begin_ps <= begins_ps);
            let here = here.map(|fill| fill.done_ps).chain(writes.under_way());
            let (mut taken, mut first_ps) = (0, u64::MAX);
            here.filter(|done_ps| *done_ps > begins_ps).for_each(|done_ps| {
                taken += 1;
                first_ps = first_ps.min(done_ps);
            });
            if taken < most {
                return begins_ps;
            }
            begins_ps = first_ps;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_miss_that_can_begin_before_another_one_that_waits_finds_its_buffer() {
        let (mut fills, mut writes) = (Fills::default(), Combining::new(2));
        let mut room_ps = |fills: &mut Fills, issue_ps| {
            fills.room_ps((2, &mut writes, Kind::Load), (0, issue_ps))
        };
        fills.add(1, (0, 100));
        assert_eq!(room_ps(&mut fills, 500), 500, "its address is known late");
        fills.add(2, (500, 600));
        assert_eq!(room_ps(&mut fills, 10), 10, "one that comes behind it");
        fills.add(3, (10, 110));
        assert_eq!(room_ps(&mut fills, 20), 100, "both buffers are taken");
        assert_eq!(fills.under_way_ps(2, 20), Some(600));
        assert_eq!(fills.under_way_ps(9, 20), None);
        assert!(fills.is_idle(600));
    }

    #[test]
    fn a_line_that_is_written_keeps_the_next_one_waiting_longer_than_one_that_is_read() {
        let (mut fills, mut writes) = (Fills::new([10, 30]), Combining::new(2));
        let mut room_ps = |kind| fills.room_ps((9, &mut writes, kind), (0, 0));
        let kinds = [Kind::Load, Kind::Load, Kind::Store, Kind::Load];
        assert_eq!(kinds.map(&mut room_ps), [0, 10, 20, 50]);
    }
}
