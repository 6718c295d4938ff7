//! Decides which accesses reach memory: set-associative caches with LRU replacement, or random replacement
//! of all lines of a set but the most recent one.
//!
//! Each level holds the lines last requested from it. Stores allocate a line like loads, and a line
//! that was stored to goes back to the next level when it is evicted. Processors distribute the lines of
//! shared caches over slices by a hash of all bits of an address (C. Maurice et al., "Reverse Engineering
//! Intel Last-Level Cache Complex Addressing Using Performance Counters", RAID 2015), and the lowest bits
//! select the set of a slice: lines at one offset in their pages share few sets (on a Zen 4, 8 MiB of lines
//! that are 256 bytes apart do not stay in 32 MiB, and 8 MiB in a row do). If the host has small pages, the
//! frames behind a guest's pages are scattered in a core's own caches: an address shares only its offset in a
//! page with its frame.

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
        let is_sliced = level.scope == Scope::Group;
        let sets_by = if is_sliced { Sets::sliced(cache.sets) } else { Sets::Lowest };
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

    /// Invalidates an address's line, if present; returns true if it was modified.
    pub fn lose(&self, address: u64) -> bool {
        let (set, tag) = (self.set_of(address), self.tag(address));
        let Some(way) = set.iter().position(|line| line.get() & !MODIFIED == tag) else {
            return false;
        };
        let held = set[way].get();
        (way + 1..self.ways).for_each(|older| set[older - 1].set(set[older].get()));
        set[self.ways - 1].set(0);
        if let Some(others) = &self.others {
            others.lose(self.first(address), way);
        }
        held & MODIFIED != 0
    }

    /// Invalidates an address's line in all of these caches; returns true if one had modified it.
    pub fn lose_all<'a>(caches: impl IntoIterator<Item = &'a Self>, address: u64) -> bool {
        caches.into_iter().fold(false, |modified, cache| cache.lose(address) | modified)
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
mod tests;
