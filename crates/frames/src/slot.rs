//! A cpu's cache: up to 64 frames of one row (the magazine), the block they come from, and one
//! wholly free block.
//!
//! All but the last fields are written by the cpu itself while its `BUSY` is set, or by a cpu that
//! holds the freeze after it saw `BUSY` clear; both sides may then use plain loads and stores.

use crate::moves::Moves;
use crate::sync::{Ordering, Ordering::Relaxed, Word, index};

// The first line: all words that the order-0 paths use.
const BUSY: usize = 0;
/// The number of the row's first frame; [`NO_ROW`] if there is no row.
const BASE: usize = 1;
const MASK: usize = 2;
/// The managed frames of the row.
const MANAGED: usize = 3;
/// The row's index among all rows.
const ROW: usize = 4;
const POOL: usize = 5;
/// Nonzero if the magazine's frames belong to another pool than the cpu's home pool.
const AWAY: usize = 6;
/// Number of frames of the home pool allocated from the cache by the fast paths.
const HITS: usize = 7;
// The second line.
const BLOCK: usize = 8;
const WHOLE: usize = 9;
const MOVES: usize = 10;
const LOCAL: usize = 11;
const REMOTE: usize = 12;
const TURN: usize = 13;
const TWICE: usize = 14;
const REFUSED: usize = 15;
/// The region of the frame that the cpu freed last: a hint.
const REGION: usize = 16;
const HOME: usize = 17;

const NO_ROW: u64 = !0;
const NO_POOL: u64 = !0;

/// A row's free frames, to be loaded into a magazine.
pub(crate) struct Refill {
    pub(crate) base: u64,
    pub(crate) mask: u64,
    pub(crate) managed: u64,
    pub(crate) row: usize,
}

#[derive(Clone, Copy)]
pub(crate) struct Slot<'m>(pub(crate) &'m [Word; 32]);

impl<'m> Slot<'m> {
    pub(crate) fn reset(self, home: usize) {
        for word in self.0 {
            word.store(0, Relaxed);
        }
        self.set(BASE, NO_ROW);
        self.set(POOL, NO_POOL);
        self.set(HOME, home as u64);
    }

    #[inline(always)]
    fn get(self, field: usize) -> u64 {
        self.0[field].load(Relaxed)
    }

    #[inline(always)]
    fn set(self, field: usize, value: u64) {
        self.0[field].store(value, Relaxed);
    }

    #[inline(always)]
    pub(crate) fn busy(self) -> &'m Word {
        &self.0[BUSY]
    }

    pub(crate) fn moves(self) -> Moves<'m> {
        Moves(&self.0[MOVES])
    }

    /// Returns the index of the region of the cpu's last free, where the next is likely to be.
    #[inline(always)]
    pub(crate) fn region_hint(self) -> usize {
        index(self.get(REGION))
    }

    #[cold]
    pub(crate) fn set_region_hint(self, place: usize) {
        self.set(REGION, place as u64);
    }

    /// Returns the pool that the fast path serves.
    pub(crate) fn home(self) -> usize {
        index(self.get(HOME))
    }

    /// Returns the pool of the reserved block, if one is reserved.
    #[inline(always)]
    pub(crate) fn pool(self) -> Option<usize> {
        let pool = self.get(POOL);
        (pool != NO_POOL).then_some(index(pool))
    }

    /// Returns true if the magazine's row is that of `frame`. Only a hint if `BUSY` is not set.
    #[inline(always)]
    pub(crate) fn has_row_of(self, frame: u64) -> bool {
        frame & !63 == self.get(BASE)
    }

    /// Takes a frame of the home pool from the magazine.
    #[inline(always)]
    pub(crate) fn pop_home(self, rows: &[[Word; 8]]) -> Option<u64> {
        if self.get(AWAY) != 0 {
            return None;
        }
        let frame = self.pop(rows)?;
        self.note_hits(1);
        Some(frame)
    }

    /// Counts frames of the home pool allocated from the cache.
    #[inline(always)]
    pub(crate) fn note_hits(self, frames: u64) {
        self.set(HITS, self.get(HITS).wrapping_add(frames));
    }

    /// Takes a frame from the magazine, whatever its pool.
    #[inline(always)]
    pub(crate) fn pop(self, rows: &[[Word; 8]]) -> Option<u64> {
        let mask = self.get(MASK);
        if mask == 0 {
            return None;
        }
        if mask & self.shared_bits(rows) != 0 {
            return self.pop_checked(rows);
        }
        self.set(MASK, mask & (mask - 1));
        Some(self.get(BASE) + u64::from(mask.trailing_zeros()))
    }

    /// Takes a frame like `pop`, for the case that other cpus have freed into the row: a frame that
    /// is in the magazine *and* free in the shared maps was freed twice, and stays only in the
    /// shared maps.
    #[cold]
    #[inline(never)]
    fn pop_checked(self, rows: &[[Word; 8]]) -> Option<u64> {
        let mask = self.drop_twice(rows);
        if mask == 0 {
            return None;
        }
        self.set(MASK, mask & (mask - 1));
        Some(self.get(BASE) + u64::from(mask.trailing_zeros()))
    }

    fn drop_twice(self, rows: &[[Word; 8]]) -> u64 {
        let twice = self.get(MASK) & self.shared_bits(rows);
        self.0[TWICE].fetch_add(u64::from(twice.count_ones()), Relaxed);
        let mask = self.get(MASK) & !twice;
        self.set(MASK, mask);
        mask
    }

    /// Takes `frames` consecutive frames from the magazine.
    pub(crate) fn pop_run(self, rows: &[[Word; 8]], frames: u64, align: u64) -> Option<u64> {
        let mask = self.drop_twice(rows);
        let start = crate::bits::run_in_word(mask, frames, align.min(64))?;
        let first = self.get(BASE) + start;
        if !first.is_multiple_of(align) {
            return None;
        }
        self.set(MASK, mask & !crate::bits::span(start, start + frames));
        Some(first)
    }

    /// Returns the bits of the magazine's row in the shared maps.
    #[inline(always)]
    fn shared_bits(self, rows: &[[Word; 8]]) -> u64 {
        let row = index(self.get(ROW));
        rows.get(row / 8).map_or(0, |block| block[row % 8].load(Relaxed))
    }

    /// Puts frames of the magazine's row back into it.
    #[inline(always)]
    pub(crate) fn push(self, rows: &[[Word; 8]], first: u64, frames: u64) -> Result<(), Push> {
        let bits = crate::bits::span(first % 64, first % 64 + frames);
        let mask = self.get(MASK);
        if bits & (mask | self.shared_bits(rows) | !self.get(MANAGED)) != 0 {
            return Err(if bits & mask == 0 { Push::Elsewhere } else { Push::InMagazine });
        }
        self.set(MASK, mask | bits);
        Ok(())
    }

    /// Loads a row into the magazine, which must be empty. Another cpu that reads base, mask, base
    /// ([`Slot::seems_to_hold`]) sees no mask with the wrong base.
    pub(crate) fn load(self, refill: &Refill) {
        self.0[BASE].store(refill.base, Relaxed);
        self.set(MANAGED, refill.managed);
        self.set(ROW, refill.row as u64);
        self.0[MASK].store(refill.mask, Ordering::Release);
    }

    /// Empties the magazine, and returns its row's index and its frames.
    pub(crate) fn unload(self) -> (usize, u64) {
        let mask = self.get(MASK);
        self.set(MASK, 0);
        self.set(BASE, NO_ROW);
        (index(self.get(ROW)), mask)
    }

    pub(crate) fn block(self) -> Option<usize> {
        self.get(BLOCK).checked_sub(1).map(index)
    }

    /// Records the block that the cpu has reserved, with its pool.
    pub(crate) fn set_block(self, block: Option<(usize, usize)>) {
        self.set(BLOCK, block.map_or(0, |(_, block)| block as u64 + 1));
        self.set(POOL, block.map_or(NO_POOL, |(pool, _)| pool as u64));
        let away = block.is_some_and(|(pool, _)| pool != self.home());
        self.set(AWAY, u64::from(away));
    }

    pub(crate) fn whole(self) -> Option<usize> {
        self.get(WHOLE).checked_sub(1).map(index)
    }

    pub(crate) fn set_whole(self, block: Option<usize>) {
        self.set(WHOLE, block.map_or(0, |block| block as u64 + 1));
    }

    /// Returns true if the magazine seems to hold a frame, as read from another cpu: the result may
    /// be wrong if the cpu is using its magazine.
    pub(crate) fn seems_to_hold(self, frame: u64) -> bool {
        let here = |base: u64| base == frame & !63;
        here(self.get(BASE))
            && self.0[MASK].load(Ordering::Acquire) >> (frame % 64) & 1 == 1
            && here(self.get(BASE))
    }

    /// Returns the number of frames in the magazine.
    pub(crate) fn cached(self) -> u64 {
        u64::from(self.0[MASK].load(Relaxed).count_ones())
    }

    /// Returns the first frame of the magazine's row, and the mask of its frames.
    pub(crate) fn magazine(self) -> (u64, u64) {
        let (base, mask) = (self.get(BASE), self.get(MASK));
        if base == NO_ROW { (0, 0) } else { (base, mask) }
    }

    /// Counts frames allocated outside the fast path.
    pub(crate) fn note_allocated(self, local: bool, frames: u64) {
        self.0[if local { LOCAL } else { REMOTE }].fetch_add(frames, Relaxed);
    }

    pub(crate) fn note_refused(self) {
        self.0[REFUSED].fetch_add(1, Relaxed);
    }

    pub(crate) fn note_twice(self, frames: u64) {
        self.0[TWICE].fetch_add(frames, Relaxed);
    }

    /// Returns the number of this interleaved allocation.
    pub(crate) fn next_turn(self) -> u64 {
        self.0[TURN].fetch_add(1, Relaxed)
    }

    /// Returns the counters: from the home pool's magazine, other local, remote, freed twice,
    /// refused.
    pub(crate) fn counters(self) -> [u64; 5] {
        [HITS, LOCAL, REMOTE, TWICE, REFUSED].map(|field| self.get(field))
    }
}

/// Reasons why frames cannot be pushed into the magazine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Push {
    /// Some are free in the shared maps, or not in the magazine's block: the shared maps decide.
    Elsewhere,
    /// Some are already in the magazine.
    InMagazine,
}
