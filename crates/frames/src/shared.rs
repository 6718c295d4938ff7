//! The maps that all cpus share: rows of bits, block words, lists. Nothing here waits.
//!
//! Rules (the loom tests check each):
//! 1. A block's count is never above the number of its set bits: a free sets bits before it counts
//!    them, an allocation counts before it clears bits.
//! 2. Only the holder of a block's token moves it between lists, and it releases the token in one
//!    step with a count that agrees with the list.
//! 3. A move sets the new list's bit before it clears the old one's.

use crate::bits::{lowest, span};
use crate::block::{BlockWord, FULL, List, Token};
use crate::ids::CpuIndex;
use crate::lists::{Lists, Pool};
use crate::map::Map;
use crate::moves::Moves;
use crate::sync::{Ordering, Word, index};

#[derive(Clone, Copy)]
pub(crate) struct Shared<'m> {
    pub(crate) map: Map<'m>,
    pub(crate) rows: &'m [[Word; 8]],
    pub(crate) blocks: &'m [Word],
    pub(crate) lists: Lists<'m>,
    pub(crate) pools: &'m [[Word; 8]],
}

impl Shared<'_> {
    #[inline(always)]
    pub(crate) fn pool(&self, pool: usize) -> Pool {
        Pool::read(&self.pools[pool])
    }

    #[inline(always)]
    pub(crate) fn block(&self, block: usize) -> BlockWord {
        BlockWord(self.blocks[block].load(Ordering::Acquire))
    }

    /// Replaces a block's word. `AcqRel`: as a claim it acquires the bits that `count` released.
    #[inline(always)]
    pub(crate) fn replace(&self, block: usize, old: BlockWord, new: BlockWord) -> bool {
        self.blocks[block]
            .compare_exchange(old.0, new.0, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Claims between `least` and `most` frames of a block, or none if fewer are free. The caller
    /// must then take the same number of bits, or count them again.
    pub(crate) fn claim(&self, block: usize, least: u64, most: u64) -> u64 {
        loop {
            let word = self.block(block);
            let claimed = word.count().min(most);
            if claimed < least || claimed == 0 {
                return 0;
            }
            if self.replace(block, word, word.with_count(word.count() - claimed)) {
                return claimed;
            }
        }
    }

    /// Takes up to `most` set bits of one row. `Acquire` pairs with the `Release` of
    /// [`Shared::put_bits`]: the freeing cpu's writes to the frames are visible.
    pub(crate) fn take_bits(&self, block: usize, row: usize, most: u64) -> u64 {
        let row = &self.rows[block][row];
        let wanted = lowest(row.load(Ordering::Relaxed), most);
        if wanted == 0 { 0 } else { row.fetch_and(!wanted, Ordering::AcqRel) & wanted }
    }

    /// Takes one bit for an earlier claim, and returns its frame. Rule 1 guarantees a bit.
    pub(crate) fn take_claimed(&self, block: usize) -> u64 {
        loop {
            for row in 0..8 {
                let taken = self.take_bits(block, row, 1);
                if taken != 0 {
                    let first = self.block(block).first_frame();
                    return first + row as u64 * 64 + u64::from(taken.trailing_zeros());
                }
            }
        }
    }

    /// Takes exactly the bits of `mask`, or none.
    pub(crate) fn take_mask(&self, block: usize, row: usize, mask: u64) -> bool {
        let row = &self.rows[block][row];
        let mut old = row.load(Ordering::Relaxed);
        while old & mask == mask {
            match row.compare_exchange_weak(old, old & !mask, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => old = now,
            }
        }
        false
    }

    /// Sets bits that the caller took, to be counted afterwards. `Release` pairs with the `Acquire`
    /// of [`Shared::take_bits`].
    pub(crate) fn give_back(&self, block: usize, row: usize, mask: u64) {
        self.rows[block][row].fetch_or(mask, Ordering::AcqRel);
    }

    /// Sets the bit of a frame, and returns true if it was clear. `Release`: as in
    /// [`Shared::give_back`]. The compiler makes it one instruction on `x86_64`.
    #[inline(always)]
    pub(crate) fn put_bit(&self, block: usize, frame: u64) -> bool {
        let bit = 1 << (frame % 64);
        self.rows[block][index(frame / 64 % 8)].fetch_or(bit, Ordering::AcqRel) & bit == 0
    }

    /// Sets the bits of `mask`, or returns those already set if there are any. `Release`: as in
    /// [`Shared::give_back`].
    #[inline(always)]
    pub(crate) fn put_bits(&self, block: usize, row: usize, mask: u64) -> Result<(), u64> {
        let row = &self.rows[block][row];
        let mut old = row.load(Ordering::Relaxed);
        while old & mask == 0 {
            match row.compare_exchange_weak(old, old | mask, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(now) => old = now,
            }
        }
        Err(old & mask)
    }

    /// Counts frames whose bits the caller has set, and moves the block to another list if
    /// necessary.
    #[inline(always)]
    pub(crate) fn count(&self, pool: usize, block: usize, frames: u64, moves: Moves<'_>) {
        let before = BlockWord(self.blocks[block].fetch_add(frames, Ordering::AcqRel));
        if List::of(before.count() + frames) != before.listed() {
            self.relist(pool, block, moves);
        }
    }

    /// Counts one frame like [`Shared::count`]: only one count in 64 leads to another list.
    ///
    /// A block that is on no list is not left to the cpu that raised its count from 0, because that
    /// cpu may not have begun the move yet. When a free has returned, its frame's block is on a
    /// list, or is held by an operation that `Frames::last_resort` waits for.
    #[inline(always)]
    pub(crate) fn count_one(&self, pool: usize, block: usize, moves: Moves<'_>) {
        let before = BlockWord(self.blocks[block].fetch_add(1, Ordering::AcqRel));
        if before.is_left_alone() || before.count() % 64 == 63 {
            self.relist(pool, block, moves);
        }
    }

    /// Puts a block on the list where it belongs, unless the token's holder will do it.
    #[cold]
    #[inline(never)]
    pub(crate) fn relist(&self, pool: usize, block: usize, moves: Moves<'_>) {
        let word = self.block(block);
        if word.token() != Token::Nobody || word.listed() == List::of(word.count()) {
            return;
        }
        // Announced before the token is taken: an operation that finds the token taken, and leaves
        // the listing to this one, has seen that a move is in progress, and so have all that learn
        // from it.
        let _moving = moves.begin();
        loop {
            let word = self.block(block);
            let on = word.listed();
            if word.token() != Token::Nobody || on == List::of(word.count()) {
                return;
            }
            if self.replace(block, word, word.with_token(Token::Mover)) {
                return self.settle(pool, block, on);
            }
        }
    }

    /// Releases a block's token with the block on the list where it belongs. The caller holds the
    /// token, and the block's bit is set only on list `on`.
    pub(crate) fn settle(&self, pool: usize, block: usize, mut on: Option<List>) {
        let pool = &self.pool(pool);
        loop {
            let word = self.block(block);
            let due = List::of(word.count());
            if due == on {
                let settled = word.with_listed(on).with_token(Token::Nobody);
                if self.replace(block, word, settled) {
                    return;
                }
                continue;
            }
            if let Some(list) = due {
                self.lists.set(pool, list, block);
            }
            if let Some(list) = on {
                self.lists.clear(pool, list, block);
            }
            on = due;
        }
    }

    /// Reserves the fullest block of a pool for a cpu, which takes it off the lists and holds its
    /// token.
    pub(crate) fn reserve(&self, pool: usize, cpu: CpuIndex) -> Option<usize> {
        let place = self.pool(pool);
        let reserved = self.lists.search(place, List::FULLEST, cpu, &mut |block, list| {
            let word = self.block(block);
            let listed = word.token() == Token::Nobody && word.listed() == Some(list);
            let mine = word.with_token(Token::Cpu(cpu)).with_listed(None);
            if !listed || !self.replace(block, word, mine) {
                return None;
            }
            self.lists.clear(&place, list, block);
            Some(block as u64)
        });
        reserved.map(index)
    }

    /// Takes one frame of a pool directly from the fullest block.
    pub(crate) fn take_one(&self, pool: usize, cpu: CpuIndex, moves: Moves<'_>) -> Option<u64> {
        let each = &mut |block, _| self.take_one_of(pool, block, moves);
        self.lists.search(self.pool(pool), List::FULLEST, cpu, each)
    }

    /// Takes a frame like [`Shared::take_one`], but over every leaf: it misses no block that is not
    /// being moved.
    pub(crate) fn take_one_of_every(&self, pool: usize, moves: Moves<'_>) -> Option<u64> {
        self.lists.every(self.pool(pool)).find_map(|block| self.take_one_of(pool, block, moves))
    }

    /// Takes a frame like [`Shared::take_one`], but over every block, listed or not, and its bits
    /// too: if bits are set that are not counted, it tries again while `moves_seen` changes,
    /// because a claim that is given back belongs to a move.
    pub(crate) fn take_one_patiently(
        &self,
        pool: usize,
        moves: Moves<'_>,
        moves_seen: &impl Fn() -> u64,
    ) -> Option<u64> {
        let Pool { first_block, blocks, .. } = self.pool(pool);
        (first_block..first_block + blocks).find_map(|block| {
            let mut before = None;
            loop {
                if let Some(frame) = self.take_one_of(pool, block, moves) {
                    return Some(frame);
                }
                if self.is_wholly_taken(block) {
                    return None;
                }
                let now = Some(moves_seen());
                if now == before {
                    return None;
                }
                before = now;
            }
        })
    }

    fn take_one_of(&self, pool: usize, block: usize, moves: Moves<'_>) -> Option<u64> {
        if self.claim(block, 1, 1) == 0 {
            return None;
        }
        let frame = self.take_claimed(block);
        self.relist(pool, block, moves);
        Some(frame)
    }

    /// Takes a wholly free block of a pool.
    pub(crate) fn take_block(&self, pool: usize, cpu: CpuIndex) -> Option<u64> {
        self.lists.search(self.pool(pool), List::WHOLE, cpu, &mut |block, _| {
            self.take_whole(pool, block).then(|| self.block(block).first_frame())
        })
    }

    /// Takes a block if it is wholly free.
    pub(crate) fn take_whole(&self, pool: usize, block: usize) -> bool {
        let word = self.block(block);
        let free = word.token() == Token::Nobody && word.listed() == Some(List::WHOLE);
        let mine = word.with_count(0).with_listed(None).with_token(Token::Mover);
        if !free || word.count() != FULL || !self.replace(block, word, mine) {
            return false;
        }
        // Rule 1: the count was 512, so all bits are set and no claim on them is open.
        for row in &self.rows[block] {
            row.store(0, Ordering::Relaxed);
        }
        self.lists.clear(&self.pool(pool), List::WHOLE, block);
        self.settle(pool, block, None);
        true
    }

    /// Frees a whole block in one step, if none of it is free and no other operation is using it.
    ///
    /// The rows are stored, not exchanged: the caller owns all frames, so only a double free of
    /// them can interfere. That free then changes the count, `replace` fails, the bits stay
    /// uncounted (rule 1 holds) and both callers get an error.
    pub(crate) fn put_whole(&self, pool: usize, block: usize, moves: Moves<'_>) -> bool {
        let word = self.block(block);
        if !word.is_left_alone() || word.count() != 0 || !self.is_wholly_taken(block) {
            return false;
        }
        for row in &self.rows[block] {
            row.store(!0, Ordering::Relaxed);
        }
        let _moving = moves.begin();
        let put = self.replace(block, word, word.with_count(FULL).with_token(Token::Mover));
        if put {
            self.settle(pool, block, None);
        }
        put
    }

    /// Takes the token of an offline block; returns false if the block is online, or if another
    /// operation is bringing it online. Only the holder of its token does that.
    pub(crate) fn claim_offline(&self, block: usize) -> bool {
        let word = self.block(block);
        let is_free = word.is_offline() && word.token() == Token::Nobody;
        is_free && self.replace(block, word, word.with_token(Token::Mover))
    }

    /// Changes a block's word, whatever others change meanwhile, and returns the old one. The caller
    /// holds the block's token or all its frames.
    pub(crate) fn change(
        &self,
        block: usize,
        change: impl Fn(BlockWord) -> BlockWord,
    ) -> BlockWord {
        loop {
            let word = self.block(block);
            if self.replace(block, word, change(word)) {
                return word;
            }
        }
    }

    /// Returns true if no bit of a block is set.
    pub(crate) fn is_wholly_taken(&self, block: usize) -> bool {
        self.rows[block].iter().fold(0, |bits, row| bits | row.load(Ordering::Acquire)) == 0
    }

    pub(crate) fn managed(&self, block: usize, row: usize, word: BlockWord, known: u64) -> u64 {
        if !word.is_partial() {
            return !0;
        }
        let first = word.first_frame();
        let (from, to) = self.map.find(known).map_or((0, 0), |region| {
            debug_assert_eq!(region.block_of(known), block);
            region.managed(first)
        });
        let row_start = row as u64 * 64;
        span(from.saturating_sub(row_start).min(64), to.saturating_sub(row_start).min(64))
    }

    /// Returns a row of a block as it is now.
    pub(crate) fn row(&self, block: usize, row: u64) -> u64 {
        self.rows[block][index(row)].load(Ordering::Relaxed)
    }
}
