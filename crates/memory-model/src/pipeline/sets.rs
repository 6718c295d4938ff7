//! The sets of the nearest cache, each of which takes one line at a time.
//!
//! Measured on a Zen 4: independent loads of lines in one set take 9.4 cycles each, in two sets 5, in
//! four 2.3, and in more sets as long as any lines from the L2, in any order, from the L2 and from
//! the L3. The lines of a column share a set if the rows of the matrix are 4 KiB long.
//!
//! A core requests the lines of stores when it knows their addresses, and stores to them in order, later. If
//! more lines of a set are requested meanwhile than it has ways, those of stores in the queue are evicted
//! first, and fetched again: stores to eight words each of eight lines of a set, then of eight others, and so
//! on, take 10.4 cycles each on a Zen 4, and 1.2 if they go to many sets. Sets fetch at the same time: stores
//! to columns of matrices, of which each line comes twice, take 5.7 to 9 cycles with rows of 2 KiB, and 3.5
//! to 5.3 with rows of 1 KiB.

use alloc::boxed::Box;

/// Sets and ways of the nearest cache of the families for which this time is known: 32 KiB.
const SETS: usize = 64;
const WAYS: usize = 8;

/// The times at which sets can take their next line.
#[derive(Clone, Debug)]
pub struct Sets {
    each_ps: u64,
    next_ps: [u64; SETS],
    stored: Box<[Stored; SETS]>,
    /// Number of stores over which lines of a set are counted: those of the queue, and those whose lines they
    /// evict.
    stores: u64,
}

/// The stores to a set.
#[derive(Clone, Copy, Debug, Default)]
struct Stored {
    /// The numbers of the last ones that missed, from 1 on, and the index of the next one.
    missed: [u64; WAYS],
    next: usize,
    /// Number of the store after which lines are no longer fetched again.
    until: u64,
}

#[inline]
fn set_of(line: u64) -> usize {
    usize::try_from(line % SETS as u64).unwrap_or(0)
}

impl Sets {
    /// Creates sets with this time between two lines, for a store queue of this length.
    pub fn new(each_ps: u64, queue: u32) -> Self {
        let stored = Box::new([Stored::default(); SETS]);
        Self { each_ps, next_ps: [0; SETS], stored, stores: 2 * u64::from(queue) }
    }

    /// Returns the time at which a line that could begin at `issue_ps` is taken; nothing begins before
    /// `now_ps` any more.
    #[inline]
    pub fn room_ps(&mut self, line: u64, (now_ps, issue_ps): (u64, u64)) -> u64 {
        let next_ps = &mut self.next_ps[set_of(line)];
        // An access with a late address may take the slot of one that is made now.
        let begins_ps = issue_ps.max(*next_ps);
        *next_ps = (*next_ps).max(now_ps) + self.each_ps;
        begins_ps
    }

    /// Records that the store of this number, from 1 on, misses its line.
    pub fn misses(&mut self, line: u64, store: u64) {
        let Stored { missed, next, until } = &mut self.stored[set_of(line)];
        let before = core::mem::replace(&mut missed[*next], store);
        *next = (*next + 1) % WAYS;
        if before > 0 && store < before + self.stores {
            *until = store + self.stores / 2;
        }
    }

    /// Returns the time at which the store of this number, which can begin at `now_ps`, has its line again
    /// if that was evicted.
    #[inline]
    pub fn again_ps(&mut self, line: u64, store: u64, now_ps: u64) -> Option<u64> {
        let set = set_of(line);
        if store >= self.stored[set].until {
            return None;
        }
        self.next_ps[set] = self.next_ps[set].max(now_ps) + self.each_ps;
        Some(self.next_ps[set])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_set_come_one_after_the_other_and_those_of_others_pass_them() {
        let mut sets = Sets::new(10, 64);
        let mut room_ps = |line| sets.room_ps(line, (100, 100));
        assert_eq!([0, 64, 1, 128, 65].map(&mut room_ps), [100, 110, 100, 120, 110]);
        assert_eq!(sets.room_ps(0, (500, 600)), 600);
        assert_eq!(sets.room_ps(0, (500, 500)), 510, "the one before has a late address");
    }

    /// Returns how many of these stores wait for a line again: groups of lines this far apart, each stored to
    /// as many times as a line has words.
    fn again(groups: u64, lines: u64, apart: u64) -> usize {
        let (mut sets, mut store) = (Sets::new(10, 64), 0);
        let mut waits = |line: u64, is_new: bool| {
            store += 1;
            if is_new {
                sets.misses(line, store);
            }
            sets.again_ps(line, store, 0).is_some()
        };
        let stores = (0..groups).flat_map(|group| {
            (0..8)
                .flat_map(move |word| (0..lines).map(move |line| (group * lines + line, word == 0)))
        });
        stores.filter(|&(line, is_new)| waits(line * apart, is_new)).count()
    }

    #[test]
    fn lines_of_several_sets_are_fetched_again_at_the_same_time() {
        let mut sets = Sets::new(10, 64);
        let stores = (1..).zip((0..18).map(|line| line % 2 + 64 * (line / 2)));
        stores.clone().for_each(|(store, line)| sets.misses(line, store));
        let again_ps = stores.filter_map(|(store, line)| sets.again_ps(line, store, 100));
        assert_eq!(again_ps.take(6).collect::<Vec<_>>(), [110, 110, 120, 120, 130, 130]);
    }

    #[test]
    fn stores_wait_again_where_the_queue_has_more_lines_of_a_set_than_its_ways() {
        assert_eq!(again(1, 8, 64), 0);
        assert_eq!(again(10, 8, 64), 9 * 64, "all but the first group");
        assert_eq!(again(10, 8, 65), 0, "in eight sets");
        assert_eq!(again(10, 4, 16), 0, "in four sets");
    }
}
