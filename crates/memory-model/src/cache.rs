//! Decides which accesses reach memory: set-associative caches with LRU replacement, or random replacement
//! of all lines of a set but the most recent one.
//!
//! Each level holds the lines last requested from it. Stores allocate a line like loads, and a line
//! that was stored to goes back to the next level when it is evicted. Shared caches compute the set
//! from all bits of an address, like processors that distribute lines over slices (C. Maurice et al.,
//! "Reverse Engineering Intel Last-Level Cache Complex Addressing Using Performance Counters", RAID
//! 2015): lines at distances of a power of two fall into different sets. If the host has small pages,
//! the frames behind a guest's pages are scattered in a core's own caches: an address shares only its
//! offset in a page with its frame, so lines that are whole pages apart share the few sets with that
//! offset.

mod sets;

use crate::counters::Figure;
use crate::machine::{CacheLevel, Scope};
use crate::others::Others;
use alloc::vec::Vec;
use sets::Sets;

/// One cache, used by one thread at a time.
#[derive(Debug)]
pub struct Cache {
    /// Ways of each set, the most recent line first: its number plus one, with [`MODIFIED`] if it was
    /// stored to; 0 for an empty way.
    lines: Vec<Figure>,
    ways: usize,
    sets: u64,
    /// Mask for a number of sets that is a power of two.
    set_mask: Option<u64>,
    sets_by: Sets,
    line_shift: u32,
    /// Present if others use the cache as well.
    others: Option<Others>,
    /// Present if it evicts any line but the most recent one: the last random number.
    draws: Option<Figure>,
}

/// Marks lines that were modified since they left memory and the next level.
const MODIFIED: u64 = 1 << 63;

/// A cache's answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    /// True if the line was present.
    pub held: bool,
    /// Address of a modified line that was evicted.
    pub evicted: Option<u64>,
}

impl Cache {
    /// Creates an empty cache with the shape of a validated level.
    pub fn new(level: &CacheLevel) -> Self {
        let shift = level.line_bytes.max(1).trailing_zeros();
        let cache = Self::of_lines(level.size_bytes >> shift, level.ways, shift);
        let bits = cache.sets.ilog2().max(1);
        let sets_by = if level.scope == Scope::Group { Sets::All(bits) } else { Sets::Lowest };
        let others = Others::of(level);
        Self { sets_by, others, ..cache }
    }

    /// Creates an empty cache with the shape of a validated level, for lines in frames of this size
    /// scattered over memory.
    pub fn scattered(level: &CacheLevel, frame_bytes: u64) -> Self {
        let cache = Self::new(level);
        let way_bytes = level.size_bytes / u64::from(level.ways.max(1));
        match cache.sets_by {
            Sets::Lowest if way_bytes > frame_bytes => {
                let frame_lines = (frame_bytes >> cache.line_shift).max(1);
                Self { sets_by: Sets::Scattered(frame_lines.ilog2()), ..cache }
            }
            _ => cache,
        }
    }

    /// Creates an empty cache of `lines`, each of 2 to the power of `line_shift` addresses.
    pub fn of_lines(lines: u64, ways: u32, line_shift: u32) -> Self {
        let ways = u64::from(ways.max(1));
        let sets = (lines / ways).max(1);
        Self {
            lines: Figure::zeros(usize::try_from(sets * ways).unwrap_or(usize::MAX)),
            ways: usize::try_from(ways).unwrap_or(usize::MAX),
            sets,
            set_mask: sets.is_power_of_two().then(|| sets - 1),
            sets_by: Sets::Lowest,
            line_shift,
            others: None,
            draws: None,
        }
    }

    /// Returns the cache with random replacement of all lines but the most recent one of a set.
    pub(crate) fn at_random(self) -> Self {
        Self { draws: Some(Figure::default()), ..self }
    }

    /// Looks up an address and makes its line the most recent one; returns whether it was present.
    #[inline]
    pub fn access(&self, address: u64) -> bool {
        self.request(address, false, 0).held
    }

    /// Looks up an address at this time, for a store if `stores`, and makes its line the most
    /// recent one.
    #[inline]
    pub(crate) fn request(&self, address: u64, stores: bool, now_ps: u64) -> Reply {
        let (set, tag) = (self.set_of(address), self.tag(address));
        let first = if stores { tag | MODIFIED } else { tag };
        let mut newer = first;
        for (way, line) in set.iter().enumerate() {
            let held = line.get();
            line.set(newer);
            if held & !MODIFIED == tag {
                if self.others.as_ref().is_some_and(|of| of.took(self.first(address), way, now_ps))
                {
                    return Reply {
                        held: false,
                        evicted: (held & MODIFIED != 0).then_some(address),
                    };
                }
                set[0].set(first | held);
                return Reply { held: true, evicted: None };
            }
            newer = held;
        }
        if let Some(others) = &self.others {
            others.took(self.first(address), self.ways - 1, now_ps);
        }
        if newer != 0 {
            newer = self.instead_of(newer, set);
        }
        let evicted = (newer & MODIFIED != 0).then(|| ((newer & !MODIFIED) - 1) << self.line_shift);
        Reply { held: false, evicted }
    }

    /// Returns the line to evict from a full set that has got a new one, in place of the oldest one, which
    /// is kept if another one is drawn.
    #[inline]
    fn instead_of(&self, oldest: u64, set: &[Figure]) -> u64 {
        let Some(draws) = self.draws.as_ref().filter(|_| self.ways > 2) else { return oldest };
        // A linear congruential generator (D. Knuth, The Art of Computer Programming 2, 3.3.4).
        let next = draws.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        draws.set(next);
        let drawn = usize::try_from(next >> 33).unwrap_or(0) % (self.ways - 1);
        // The first two are the new line and the most recent one before it.
        let Some(place) = set.len().checked_sub(drawn).filter(|place| *place < set.len()) else {
            return oldest;
        };
        let evicted = set[place].get();
        (place + 1..set.len()).for_each(|older| set[older - 1].set(set[older].get()));
        set[set.len() - 1].set(oldest);
        evicted
    }

    /// Returns true if the line of an address is the most recent one of its set.
    #[inline]
    pub(crate) fn is_latest(&self, address: u64) -> bool {
        let latest = self.set_of(address).first();
        latest.is_some_and(|line| line.get() & !MODIFIED == self.tag(address))
    }

    /// Returns true if the line of an address is the most recent one of its set, and modified.
    #[inline]
    pub(crate) fn has_stored(&self, address: u64) -> bool {
        let latest = self.set_of(address).first();
        latest.is_some_and(|line| line.get() == self.tag(address) | MODIFIED)
    }

    /// Looks up an address and makes its line the most recent one only if it is present.
    #[inline]
    pub(crate) fn access_held(&self, address: u64) -> bool {
        let (set, tag) = (self.set_of(address), self.tag(address));
        let has = |line: &Figure| line.get() & !MODIFIED == tag;
        let Some(way) = set.iter().position(has) else { return false };
        let held = set[way].get();
        (0..way).rev().for_each(|newer| set[newer + 1].set(set[newer].get()));
        set[0].set(held);
        true
    }

    /// Reports whether the cache has the line of an address, without changing its age.
    pub fn holds(&self, address: u64) -> bool {
        let tag = self.tag(address);
        self.set_of(address).iter().any(|line| line.get() & !MODIFIED == tag)
    }

    /// Invalidates an address's line, if present.
    pub fn lose(&self, address: u64) {
        let (set, tag) = (self.set_of(address), self.tag(address));
        if let Some(way) = set.iter().position(|line| line.get() & !MODIFIED == tag) {
            (way + 1..self.ways).for_each(|older| set[older - 1].set(set[older].get()));
            set[self.ways - 1].set(0);
            if let Some(others) = &self.others {
                others.lose(self.first(address), way);
            }
        }
    }

    #[inline]
    fn tag(&self, address: u64) -> u64 {
        (address >> self.line_shift) + 1
    }

    /// Returns the set of the line of an address.
    #[inline]
    fn set_of(&self, address: u64) -> &[Figure] {
        let first = self.first(address);
        &self.lines[first..first + self.ways]
    }

    /// Returns the index of a set's first way.
    #[inline]
    fn first(&self, address: u64) -> usize {
        let line = self.sets_by.selector(address >> self.line_shift);
        let set = self.set_mask.map_or_else(|| line % self.sets, |mask| line & mask);
        usize::try_from(set).unwrap_or(0) * self.ways
    }

    /// Copies all lines and the times of their last uses from a cache of the same shape.
    pub(crate) fn copy(&self, from: &Self) {
        self.lines.iter().zip(&from.lines).for_each(|(line, from)| line.set(from.get()));
        if let Some((own, others)) = self.others.as_ref().zip(from.others.as_ref()) {
            own.copy(others);
        }
    }

    /// Invalidates all lines.
    pub fn clear(&self) {
        self.lines.iter().for_each(|line| line.set(0));
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
            life_ns: 0.0,
        }
    }

    /// A reference implementation with queues of line numbers.
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
            let mut oracle = Oracle { sets: HashMap::new(), count: sets, ways: ways as usize };
            for address in addresses {
                let hit = oracle.access(address);
                prop_assert_eq!(cache.holds(address), hit);
                let held = quickly && cache.access_held(address);
                prop_assert_eq!(held, hit && quickly);
                prop_assert_eq!(held || cache.access(address), hit);
            }
        }
    }

    #[test]
    fn an_invalidated_line_leaves_the_order_of_the_others() {
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
    fn a_line_that_was_stored_to_is_reported_once_when_it_is_evicted() {
        let cache = Cache::new(&level(1, 2));
        let evicted = |address, stores| cache.request(address, stores, 0).evicted;
        assert_eq!(
            [evicted(0, true), evicted(64, false), evicted(128, false)],
            [None, None, Some(0)]
        );
        assert_eq!([evicted(0, false), evicted(192, false)], [None, None], "it has gone back");
        // A load of a modified line leaves it modified, on the fast path too.
        cache.request(256, true, 0);
        assert!(cache.has_stored(256) && !cache.has_stored(192));
        assert!(!cache.access(0) && cache.access_held(256) && cache.access(256));
        assert_eq!([evicted(64, false), evicted(128, false)], [None, Some(256)]);
        cache.lose(128);
        assert_eq!([evicted(64, true), evicted(320, true)], [None, None]);
        assert_eq!([evicted(0, false), evicted(128, false)], [Some(64), Some(320)]);
    }

    #[test]
    fn a_working_set_of_the_caches_size_always_hits_and_one_line_more_never_does() {
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

    #[test]
    fn a_shared_cache_holds_lines_a_power_of_two_apart_and_a_contiguous_buffer_of_its_size() {
        // 1 MiB, 1.5 MiB and 32 MiB, with 16 ways.
        for (sets, ways) in [(1024, 16), (1536, 16), (1 << 15, 16)] {
            let hits = |scope, apart: u64, lines: u64| {
                let cache = Cache::new(&CacheLevel { scope, ..level(sets, ways) });
                (0..lines).for_each(|line| _ = cache.access(line * apart * 64));
                (0..lines).filter(|line| cache.holds(line * apart * 64)).count() as f64
            };
            assert!(hits(Scope::Group, sets, 512) > 500.0, "{sets}");
            let in_few_sets = hits(Scope::Cpu, sets, 512);
            assert!(in_few_sets < 20.0, "{in_few_sets}");
            let all = sets * u64::from(ways);
            assert!(hits(Scope::Group, 1, all) / all as f64 > 0.85, "{sets}");
        }
    }

    #[test]
    fn scattered_frames_spread_a_buffer_but_not_lines_at_one_offset_of_many_pages() {
        // 512 KiB with 8 ways and 1.25 MiB with 10: lines at one offset have 16 and 32 sets.
        for (sets, ways, of_offset) in [(1024_u64, 8_u32, 16.0), (2048, 10, 32.0)] {
            let held = |apart: u64, lines: u64| {
                let cache = Cache::scattered(&level(sets, ways), 4096);
                (0..lines).for_each(|line| _ = cache.access(line * apart));
                (0..lines).filter(|line| cache.holds(line * apart)).count() as f64
            };
            let half = sets * u64::from(ways) / 2;
            assert!(held(64, half) / half as f64 > 0.9, "{sets}");
            for apart in [4096, 16_384, 64 << 10] {
                let most = of_offset * f64::from(ways);
                let found = held(apart, 1024);
                assert!(found <= most && found > 0.7 * most, "{found} of {most}, {apart} apart");
            }
            assert!(held(64 * sets, u64::from(ways) * 2) > f64::from(ways), "not in one set");
        }
    }

    #[test]
    fn consecutive_frames_fall_into_places_as_if_at_random() {
        // 32 places for eight frames each; of 256 frames at random, 36 find no room.
        let kept = |first: u64| {
            let cache = Cache::scattered(&level(2048, 8), 4096);
            let lines = || (first..first + 256).map(|frame| frame * 4096);
            lines().for_each(|line| _ = cache.access(line));
            lines().filter(|line| cache.holds(*line)).count()
        };
        let kept: Vec<usize> = (0..64).map(|part| kept(part << 9)).collect();
        let mean = kept.iter().sum::<usize>() / kept.len();
        assert!((217..224).contains(&mean), "{mean} of 256: {kept:?}");
    }

    #[test]
    fn a_cache_that_evicts_at_random_keeps_some_lines_of_a_set_that_is_too_small() {
        let hits = |ways: u32, lines: u64| {
            let cache = Cache::new(&level(1, ways)).at_random();
            let line = |at: u64| cache.access(at % lines * 64);
            (0..100 * lines).for_each(|at| _ = line(at));
            (0..100 * lines).filter(|at| line(*at)).count() as f64 / (100 * lines) as f64
        };
        assert!(hits(8, 8) == 1.0);
        // If the oldest line were evicted, none would be there.
        let [nine, sixteen] = [9, 16].map(|lines| hits(8, lines));
        assert!((0.6..0.8).contains(&nine) && (0.1..0.2).contains(&sixteen), "{nine} {sixteen}");
        assert_eq!([1, 2].map(|ways| hits(ways, 3)), [0.0; 2], "nothing to choose from");
        let cache = Cache::new(&level(1, 4)).at_random();
        let evicts = |at: u64| cache.request(at * 64, true, 0).evicted;
        assert_eq!([0, 1, 2, 3].map(evicts), [None; 4]);
        assert!(
            (4..50).all(|at| evicts(at).is_some_and(|of| of < (at - 1) * 64)),
            "not the last one"
        );
    }
}
