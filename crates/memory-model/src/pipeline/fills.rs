//! Lines in flight to a core, each in one of its fill buffers.

use alloc::vec::Vec;

use super::combining::Combining;

/// A line in flight.
#[derive(Clone, Copy, Debug)]
struct Fill {
    line: u64,
    /// The times at which the line gets a fill buffer and at which it arrives.
    begin_ps: u64,
    done_ps: u64,
}

/// The lines in flight, including those that still wait for a buffer.
#[derive(Clone, Debug, Default)]
pub struct Fills {
    all: Vec<Fill>,
    /// A bit for each of their lines, shared by other lines.
    lines: [u64; 4],
    /// Arrival time of the last line.
    latest_ps: u64,
    /// Time between two lines without and with the eviction of a modified one, and the earliest
    /// start of the next line.
    each_ps: [u64; 2],
    next_ps: u64,
    /// Times between two lines from beyond the core's own caches, for lines in a row and others,
    /// and the earliest start of the next one.
    far_each_ps: [u64; 2],
    far_next_ps: u64,
}

/// A miss of the nearest cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Miss {
    /// True if the cache evicts a modified line, which is written back, to make room.
    pub goes_back: bool,
    /// True if the line is in none of the core's own caches.
    pub is_far: bool,
}

impl Miss {
    /// Creates a miss of a line that is in this level of the machine's caches, `own_caches` of
    /// which are the core's own.
    pub fn new(level: Option<usize>, own_caches: usize, goes_back: bool) -> Self {
        Self { goes_back, is_far: level.is_none_or(|level| level >= own_caches) }
    }
}

/// Returns a line's word, and its bit there.
#[inline]
fn bit(line: u64) -> (usize, u64) {
    let [.., bit, word] = line.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    (usize::from(word % 4), 1 << (bit % 64))
}

impl Fills {
    /// Creates an empty set, with these times between two lines, between two for which modified ones go
    /// back, and between two from beyond the core's own caches.
    pub fn new(each_ps: [u64; 2], far_each_ps: [u64; 2]) -> Self {
        Self { each_ps, far_each_ps, ..Self::default() }
    }

    /// Returns true if no line is in flight at this time.
    #[inline]
    pub fn is_idle(&self, now_ps: u64) -> bool {
        self.latest_ps <= now_ps
    }

    /// Returns the arrival time of a line that is already in flight.
    #[inline]
    pub fn under_way_ps(&self, line: u64, now_ps: u64) -> Option<u64> {
        let (word, bit) = bit(line);
        if self.is_idle(now_ps) || self.lines[word] & bit == 0 {
            return None;
        }
        // Most repeated requests are for the lines requested last.
        let mut fills = self.all.iter().rev();
        let fill = fills.find(|fill| fill.line == line && fill.done_ps > now_ps);
        fill.map(|fill| fill.done_ps)
    }

    /// Adds a line in flight.
    pub fn add(&mut self, line: u64, (begin_ps, done_ps): (u64, u64)) {
        self.all.push(Fill { line, begin_ps, done_ps });
        let (word, bit) = bit(line);
        self.lines[word] |= bit;
        self.latest_ps = self.latest_ps.max(done_ps);
    }

    /// Removes lines that arrived before a time, because nothing begins earlier any more.
    fn forget_before(&mut self, now_ps: u64) {
        self.all.retain(|fill| fill.done_ps > now_ps);
        self.lines = [0; 4];
        for (word, bit) in self.all.iter().map(|fill| bit(fill.line)) {
            self.lines[word] |= bit;
        }
    }

    /// Returns the time at which a line that the nearest cache evicted too early has come again, and the one
    /// that was modified in its place has gone back; it occupies no buffer then, only the way between the
    /// caches.
    pub fn again_ps(&mut self, now_ps: u64) -> u64 {
        self.next_ps = self.next_ps.max(now_ps) + self.each_ps[1];
        self.next_ps
    }

    /// Records that the last line from beyond the core's own caches was not one of several in a row.
    pub fn far_without_stream(&mut self) {
        self.far_next_ps += self.far_each_ps[1] - self.far_each_ps[0];
    }

    /// Returns the time from `issue_ps` on at which no other line begins: addresses that become known at the
    /// same time wait for one another.
    fn free_ps(&self, issue_ps: u64) -> u64 {
        let each_ps = self.each_ps[0];
        let is_near = |at_ps: u64, fill: &&Fill| {
            fill.begin_ps < at_ps + each_ps && at_ps < fill.begin_ps + each_ps
        };
        let mut at_ps = issue_ps;
        while let Some(fill) = self.all.iter().find(|fill| is_near(at_ps, fill)) {
            at_ps = fill.begin_ps + each_ps;
        }
        at_ps
    }

    /// Returns the time at which a line that could begin at `issue_ps` gets one of `most` buffers,
    /// which `writes` share; nothing begins before `now_ps` any more.
    pub fn room_ps(
        &mut self,
        (most, writes, miss): (u32, &mut Combining, Miss),
        (now_ps, issue_ps): (u64, u64),
    ) -> u64 {
        self.forget_before(now_ps);
        writes.forget_before(now_ps);
        // An access with a late address may take the slot of one that is made now.
        let next_ps = self.next_ps.max(now_ps);
        self.next_ps = next_ps + self.each_ps[usize::from(miss.goes_back)];
        let mut begins_ps = issue_ps.max(next_ps);
        if issue_ps > next_ps {
            begins_ps = self.free_ps(issue_ps);
        }
        if miss.is_far {
            let next_ps = self.far_next_ps.max(now_ps);
            self.far_next_ps = next_ps + self.far_each_ps[0];
            begins_ps = begins_ps.max(next_ps);
        }
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

    const NEAR: Miss = Miss { goes_back: false, is_far: false };

    #[test]
    fn a_line_that_comes_again_delays_the_next_one() {
        let mut fills = Fills::new([10, 12], [0; 2]);
        let mut writes = Combining::new(2);
        assert_eq!([fills.again_ps(100), fills.again_ps(100)], [112, 124]);
        assert_eq!(fills.room_ps((2, &mut writes, NEAR), (100, 100)), 124);
    }

    #[test]
    fn a_miss_that_can_begin_before_another_one_that_waits_finds_its_buffer() {
        let (mut fills, mut writes) = (Fills::default(), Combining::new(2));
        let mut room_ps =
            |fills: &mut Fills, issue_ps| fills.room_ps((2, &mut writes, NEAR), (0, issue_ps));
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
    fn lines_whose_addresses_become_known_at_the_same_time_come_one_after_the_other() {
        let (mut fills, mut writes) = (Fills::new([10, 30], [0; 2]), Combining::new(9));
        let mut begins_ps = |line, issue_ps| {
            let begin_ps = fills.room_ps((9, &mut writes, NEAR), (0, issue_ps));
            fills.add(line, (begin_ps, begin_ps + 100));
            begin_ps
        };
        assert_eq!([500, 500, 505, 495].map(|at_ps| begins_ps(at_ps, at_ps)), [500, 510, 520, 530]);
        assert_eq!(begins_ps(9, 600), 600);
    }

    #[test]
    fn a_line_for_which_another_one_goes_back_keeps_the_next_one_waiting_longer() {
        let (mut fills, mut writes) = (Fills::new([10, 30], [0; 2]), Combining::new(2));
        let mut room_ps =
            |goes_back| fills.room_ps((9, &mut writes, Miss { goes_back, ..NEAR }), (0, 0));
        assert_eq!([false, false, true, false].map(&mut room_ps), [0, 10, 20, 50]);
    }

    #[test]
    fn lines_from_beyond_the_cores_own_caches_come_at_their_own_rate() {
        let (mut fills, mut writes) = (Fills::new([10, 30], [40, 60]), Combining::new(2));
        let mut room_ps = |is_far| fills.room_ps((9, &mut writes, Miss { is_far, ..NEAR }), (0, 0));
        let far = [true, true, false, false, true];
        assert_eq!(far.map(&mut room_ps), [0, 40, 20, 30, 80], "those of the L2 pass others");
        fills.far_without_stream();
        let of = (9, &mut writes, Miss { is_far: true, ..NEAR });
        assert_eq!(fills.room_ps(of, (0, 0)), 140, "the last one was not one of several in a row");
    }
}
