//! Which accesses reach memory: set-associative caches, least recently used line out.
//!
//! Each level holds what was last asked of it. Stores allocate a line as loads do, and lines
//! written back cost nothing.

use crate::counters::Figure;
use crate::machine::CacheLevel;
use alloc::vec::Vec;

/// One cache, which one thread uses at a time.
#[derive(Debug)]
pub struct Cache {
    /// Ways of each set; a line's number plus one, 0 for none.
    lines: Vec<Figure>,
    /// When each was used last, by a clock that goes on with each use; 0 for none.
    used: Vec<Figure>,
    clock: Figure,
    ways: usize,
    sets: u64,
    /// Of a number of sets that is a power of two.
    set_mask: Option<u64>,
    line_shift: u32,
}

impl Cache {
    /// An empty cache with the shape of a checked level.
    pub fn new(level: &CacheLevel) -> Self {
        let shift = level.line_bytes.max(1).trailing_zeros();
        Self::of_lines(level.size_bytes >> shift, level.ways, shift)
    }

    /// An empty cache of so many lines, each of 2 to the power of `line_shift` addresses.
    pub fn of_lines(lines: u64, ways: u32, line_shift: u32) -> Self {
        let ways = u64::from(ways.max(1));
        let sets = (lines / ways).max(1);
        let lines = usize::try_from(sets * ways).unwrap_or(usize::MAX);
        let figures = || (0..lines).map(|_| Figure::default()).collect();
        Self {
            lines: figures(),
            used: figures(),
            clock: Figure::default(),
            ways: usize::try_from(ways).unwrap_or(usize::MAX),
            sets,
            set_mask: sets.is_power_of_two().then(|| sets - 1),
            line_shift,
        }
    }

    /// Looks an address up and makes its line the most recent one; whether it was there.
    #[inline]
    pub fn access(&self, address: u64) -> bool {
        self.look_up(address).0
    }

    /// The same, and the line's place among all.
    #[inline]
    pub(crate) fn look_up(&self, address: u64) -> (bool, u32) {
        let (first, tag) = (self.first_of(address), self.tag(address));
        let set = &self.lines[first..first + self.ways];
        let found = set.iter().position(|line| line.get() == tag);
        let at = first + found.unwrap_or_else(|| self.oldest(first));
        self.lines[at].set(tag);
        self.uses(at);
        (found.is_some(), u32::try_from(at).unwrap_or(u32::MAX))
    }

    /// Looks an address up whose line had this place; whether it is there still.
    #[inline]
    pub(crate) fn access_at(&self, place: u32, address: u64) -> bool {
        let at = place as usize;
        let has = self.lines[at].get() == self.tag(address);
        if has {
            self.uses(at);
        }
        has
    }

    /// Whether it has an address's line, which stays as recent as it is.
    pub fn holds(&self, address: u64) -> bool {
        let first = self.first_of(address);
        let tag = self.tag(address);
        self.lines[first..first + self.ways].iter().any(|line| line.get() == tag)
    }

    /// Loses an address's line, if it has it.
    pub fn lose(&self, address: u64) {
        let (first, tag) = (self.first_of(address), self.tag(address));
        let set = &self.lines[first..first + self.ways];
        if let Some(way) = set.iter().position(|line| line.get() == tag) {
            self.lines[first + way].set(0);
            self.used[first + way].set(0);
        }
    }

    /// The least recent way of a set.
    fn oldest(&self, first: usize) -> usize {
        let used = self.used[first..first + self.ways].iter().map(Figure::get);
        used.enumerate().min_by_key(|(_, used)| *used).map_or(0, |(way, _)| way)
    }

    #[inline]
    fn uses(&self, at: usize) {
        self.clock.add(1);
        self.used[at].set(self.clock.get());
    }

    #[inline]
    fn tag(&self, address: u64) -> u64 {
        (address >> self.line_shift) + 1
    }

    /// Place of the first way of an address's set.
    #[inline]
    fn first_of(&self, address: u64) -> usize {
        let line = address >> self.line_shift;
        let set = self.set_mask.map_or_else(|| line % self.sets, |mask| line & mask);
        usize::try_from(set).unwrap_or(0) * self.ways
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.lines.iter().chain(&self.used).for_each(|figure| figure.set(0));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, VecDeque};

    use proptest::prelude::*;

    use super::*;
    use crate::machine::Scope;

    fn level(sets: u64, ways: u32) -> CacheLevel {
        let size_bytes = 64 * sets * u64::from(ways);
        CacheLevel {
            level: 1,
            size_bytes,
            ways,
            line_bytes: 64,
            scope: Scope::Cpu,
            latency_ns: 0.0,
        }
    }

    /// The same by queues of line numbers.
    struct Oracle {
        sets: HashMap<u64, VecDeque<u64>>,
        count: u64,
        ways: usize,
    }

    impl Oracle {
        fn access(&mut self, address: u64) -> bool {
            let line = address / 64;
            let set = self.sets.entry(line % self.count).or_default();
            let hit = set.contains(&line);
            set.retain(|held| *held != line);
            set.push_front(line);
            set.truncate(self.ways);
            hit
        }
    }

    proptest! {
        #[test]
        fn hits_are_those_of_a_naive_cache(
            sets in 1_u64..20,
            ways in 1_u32..9,
            addresses in prop::collection::vec(0_u64..16_384, 1..600),
            quickly in any::<bool>(),
        ) {
            let cache = Cache::new(&level(sets, ways));
            let mut places = HashMap::new();
            let mut oracle = Oracle { sets: HashMap::new(), count: sets, ways: ways as usize };
            for address in addresses {
                let hit = oracle.access(address);
                prop_assert_eq!(cache.holds(address), hit);
                let place = places.get(&(address / 64)).filter(|_| quickly);
                if place.is_some_and(|place| cache.access_at(*place, address)) {
                    prop_assert!(hit);
                    continue;
                }
                let (found, place) = cache.look_up(address);
                prop_assert_eq!(found, hit);
                places.insert(address / 64, place);
            }
        }
    }

    #[test]
    fn a_line_that_is_lost_leaves_the_others_in_their_order() {
        let cache = Cache::new(&level(1, 3));
        assert!([0, 64, 128].iter().all(|&address| !cache.access(address)));
        cache.lose(64);
        cache.lose(4096);
        assert_eq!([0, 64, 128].map(|address| cache.holds(address)), [true, false, true]);
        cache.access(192);
        cache.access(256);
        assert!(!cache.holds(0) && cache.holds(128), "the oldest goes first");
    }

    #[test]
    fn a_working_set_of_the_caches_size_stays_and_a_line_more_in_order_never_does() {
        let cache = Cache::new(&level(1, 8));
        for round in 0..3 {
            let hits = (0..8).filter(|line| cache.access(line * 64)).count();
            assert_eq!(hits, if round == 0 { 0 } else { 8 });
        }
        cache.clear();
        for _ in 0..3 {
            assert_eq!((0..9).filter(|line| cache.access(line * 64)).count(), 0);
        }
    }
}
