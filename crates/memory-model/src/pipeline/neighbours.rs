//! A prefetcher of lines near one that is missed.
//!
//! AMD's guide for family 19h, 2.12.2, "L1 Region": if the access of an instruction tends to be
//! followed by others in a region, these lines are fetched with its own. Measured on a Zen 4 with
//! dependent loads of nodes in random order, which take 194 ns each: a second line that is one, two
//! or three lines further takes 22 to 27 ns more, one that is seven lines further 214, and half as
//! many of them are as fast. The next line is fetched in any case; the previous one is not if only
//! one of 32 misses needed it. Lines of 32, 64, 128 and 256 streams in random order were fetched in
//! 89, 67, 43 and 32 % of cases, as if 64 misses were remembered.

use alloc::boxed::Box;

use super::tracked::Tracked;

/// Number of misses that are remembered.
const MISSES: usize = 64;
/// Maximum distance of lines that are fetched.
const NEAR: i64 = 3;
/// Number of distances up to `NEAR`, in both directions.
const DISTANCES: usize = 7;
/// Number of misses of an instruction without a line at a distance after which that line is not
/// fetched.
const SELDOM: u64 = 8;
/// Lines of a page: 4 KiB.
const PAGE_LINES: u64 = 64;

/// A miss of a line by an instruction.
#[derive(Clone, Copy, Debug)]
struct Missed {
    line: u64,
    by: usize,
    at_ps: u64,
}

/// An instruction that misses lines.
#[derive(Clone, Copy, Debug, Default)]
struct Follower {
    /// Number of the instruction's misses, and for each distance the number of the last miss that
    /// such a line followed.
    misses: u64,
    followed: [u64; DISTANCES],
}

impl Follower {
    /// Returns true if the line at a distance is fetched with its own.
    fn fetches(&self, distance: i64) -> bool {
        let followed = self.followed[index(distance)];
        distance == 1 || followed > 0 && self.misses - followed < SELDOM
    }
}

/// Returns the place of a distance.
fn index(distance: i64) -> usize {
    usize::try_from(distance + NEAR).unwrap_or(0)
}

/// The misses of a core.
#[derive(Clone, Debug)]
pub struct Neighbours {
    /// Time from a miss to the request of the lines near it.
    later_ps: u64,
    /// The last misses, each at the index of its number.
    recent: Box<[Missed; MISSES]>,
    followers: Tracked<Follower>,
}

impl Neighbours {
    /// Creates a prefetcher that requests lines this long after a miss.
    pub fn new(later_ps: u64) -> Self {
        let none = Missed { line: u64::MAX, by: 0, at_ps: 0 };
        Self { later_ps, recent: Box::new([none; MISSES]), followers: Tracked::NONE }
    }

    /// Returns the time at which a line that an instruction misses at `now_ps` was requested; `now_ps` if
    /// it was not.
    pub fn asked_ps(&mut self, by: usize, line: u64, now_ps: u64) -> u64 {
        let mut asked_ps = now_ps;
        for missed in self.recent.iter() {
            let distance = line.wrapping_sub(missed.line).cast_signed();
            let is_near = distance.unsigned_abs() <= NEAR.unsigned_abs() && distance != 0;
            if !is_near || line / PAGE_LINES != missed.line / PAGE_LINES {
                continue;
            }
            let Some(follower) = self.followers.get_mut(missed.by) else { continue };
            if follower.fetches(distance) {
                asked_ps = asked_ps.min(missed.at_ps + self.later_ps);
            }
            follower.followed[index(distance)] = follower.misses;
        }
        self.add(by, line, now_ps);
        asked_ps
    }

    fn add(&mut self, by: usize, line: u64, at_ps: u64) {
        let place = usize::try_from(self.followers.misses() % MISSES as u64).unwrap_or(0);
        self.recent[place] = Missed { line, by, at_ps };
        let new = Follower { misses: 1, ..Follower::default() };
        if let Some(follower) = self.followers.add_miss(by, new) {
            follower.misses += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// Returns whether a line at a distance from one that an instruction has missed was requested with it, if
    /// that follows one of `every` misses of different pages, and `between` others come between them.
    fn is_fetched(distance: i64, every: u64, between: u64) -> bool {
        let mut neighbours = Neighbours::new(5);
        let mut found = Vec::new();
        for at in 0..40 * every {
            let line = (at * 1000 + at % 7) * PAGE_LINES + 20;
            neighbours.asked_ps(8, line, at * 100);
            (0..between).for_each(|other| {
                neighbours.asked_ps(16, (at * 1000 + 500 + other) * PAGE_LINES, at * 100);
            });
            if at % every == 0 {
                let next = line.checked_add_signed(distance).unwrap();
                found.push(neighbours.asked_ps(24, next, at * 100 + 50) == at * 100 + 5);
            }
        }
        found[10..].iter().all(|fetched| *fetched)
    }

    #[test]
    fn lines_that_follow_a_miss_of_an_instruction_are_fetched_with_it() {
        assert_eq!([-3, -1, 1, 2, 3].map(|distance| is_fetched(distance, 1, 0)), [true; 5]);
        assert!(is_fetched(2, 2, 0), "half of them");
        assert!(!is_fetched(4, 1, 0) && !is_fetched(7, 1, 0), "too far");
        assert_eq!([1, -1, 2].map(|distance| is_fetched(distance, 32, 0)), [true, false, false]);
    }

    #[test]
    fn a_miss_is_forgotten_after_as_many_others_and_pages_are_not_left() {
        assert_eq!([40, 70].map(|between| is_fetched(1, 1, between)), [true, false]);
        let mut neighbours = Neighbours::new(5);
        neighbours.asked_ps(8, PAGE_LINES - 1, 0);
        assert_eq!(neighbours.asked_ps(8, PAGE_LINES, 100), 100);
        assert_eq!(neighbours.asked_ps(8, PAGE_LINES + 1, 200), 105);
    }

    #[test]
    fn the_addresses_of_instructions_in_the_emulator_change_nothing() {
        let asked = |address: fn(u64) -> u64| {
            let mut neighbours = Neighbours::new(5);
            let ask = |at: u64| {
                let by = usize::try_from(address(at % 100 % 41)).unwrap();
                let line = at / 2 * 1000 * PAGE_LINES + at % 2 * 2;
                neighbours.asked_ps(by, line, at * 100)
            };
            (0..5000).map(ask).collect::<Vec<u64>>()
        };
        assert_eq!(asked(|at| at * 8), asked(|at| (at * 7919 % 4096) * 64 + 4096));
    }
}
