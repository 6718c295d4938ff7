//! Operations of a cpu on its cache while `busy` is set: refilling, reserving, emptying.

use crate::block::{FULL, Token};
use crate::fences::Fences;
use crate::frames::Frames;
use crate::ids::CpuIndex;
use crate::runs::RunRequest;
use crate::slot::{Refill, Slot};
use crate::sync::{Ordering, index};

impl<'m, F: Fences> Frames<'m, F> {
    /// Fills the empty magazine from the reserved block.
    pub(crate) fn refill_from_reserved(&self, slot: Slot<'m>, pool: usize) -> bool {
        let Some(block) = slot.block() else {
            return false;
        };
        if let Some(refill) = self.take_row(block) {
            self.unload(slot);
            slot.load(&refill);
            return true;
        }
        self.unload(slot);
        slot.set_block(None);
        self.shared.settle(pool, block, None);
        false
    }

    /// Fills the magazine from the fullest block of a pool, which the cpu then reserves.
    pub(crate) fn refill(&self, cpu: CpuIndex, slot: Slot<'m>, pool: usize) -> bool {
        while let Some(block) = self.shared.reserve(pool, cpu) {
            self.empty_magazine(slot);
            slot.set_block(Some((pool, block)));
            if self.refill_from_reserved(slot, pool) {
                return true;
            }
        }
        false
    }

    /// Takes the free frames of one row of a reserved block.
    fn take_row(&self, block: usize) -> Option<Refill> {
        let shared = &self.shared;
        loop {
            let word = shared.block(block);
            if word.count() == 0 {
                return None;
            }
            // Rule 1: the bits are there, although another claim may take some and force another
            // look.
            let Some(row) = (0..8).find(|&row| shared.row(block, row) != 0) else {
                continue;
            };
            let free = u64::from(shared.row(block, row).count_ones());
            let claimed = shared.claim(block, 1, free);
            let mask = shared.take_bits(block, index(row), claimed);
            let surplus = claimed - u64::from(mask.count_ones());
            if surplus > 0 {
                // The block is reserved by this cpu, so there is no list to update.
                shared.blocks[block].fetch_add(surplus, Ordering::AcqRel);
            }
            if mask != 0 {
                let base = word.first_frame() + row * 64;
                let known = base + u64::from(mask.trailing_zeros());
                let managed = shared.managed(block, index(row), word, known);
                return Some(Refill { base, mask, managed, row: block * 8 + index(row) });
            }
        }
    }

    /// Puts the magazine's frames back into their row in the shared maps. A frame that is already
    /// free there was freed twice: it is counted once and recorded.
    fn unload(&self, slot: Slot<'m>) {
        let (row, mask) = slot.unload();
        if mask == 0 {
            return;
        }
        let block = row / 8;
        let before = self.shared.rows[block][row % 8].fetch_or(mask, Ordering::AcqRel);
        slot.note_twice(u64::from((before & mask).count_ones()));
        let frames = u64::from((mask & !before).count_ones());
        // The block is still reserved, so there is no list to update.
        self.shared.blocks[block].fetch_add(frames, Ordering::AcqRel);
    }

    /// Puts the magazine and the reserved block back into the shared maps.
    pub(crate) fn empty_magazine(&self, slot: Slot<'m>) {
        self.unload(slot);
        if let (Some(pool), Some(block)) = (slot.pool(), slot.block()) {
            slot.set_block(None);
            self.shared.settle(pool, block, None);
        }
    }

    /// Puts the cached whole block back into the shared maps.
    pub(crate) fn empty_whole(&self, slot: Slot<'m>) {
        let Some(block) = slot.whole() else { return };
        slot.set_whole(None);
        self.shared.change(block, |word| word.with_cached(false).with_token(Token::Mover));
        let first = self.shared.block(block).first_frame();
        let Some(region) = self.shared.map.find(first) else {
            return;
        };
        for row in &self.shared.rows[block] {
            row.store(!0, Ordering::Relaxed);
        }
        self.shared.blocks[block].fetch_add(FULL, Ordering::AcqRel);
        self.shared.settle(region.pool, block, None);
    }

    /// Takes the cached whole block, if the pool is the cpu's home pool, which the block belongs
    /// to.
    pub(crate) fn take_cached_whole(&self, slot: Slot<'m>, pool: usize) -> Option<u64> {
        if pool != slot.home() {
            return None;
        }
        let block = slot.whole()?;
        slot.set_whole(None);
        let word =
            self.shared.change(block, |word| word.with_cached(false).with_token(Token::Nobody));
        Some(word.first_frame())
    }

    /// Caches a wholly allocated block of the home pool that is being freed, if none is cached yet.
    pub(crate) fn cache_whole(&self, cpu: CpuIndex, slot: Slot<'m>, block: usize) -> bool {
        let word = self.shared.block(block);
        let idle = word.token() == Token::Nobody && word.listed().is_none() && word.count() == 0;
        let mine = word.with_cached(true).with_token(Token::Cpu(cpu));
        if slot.whole().is_some() || !idle || !self.shared.is_wholly_taken(block) {
            return false;
        }
        let kept = self.shared.replace(block, word, mine);
        if kept {
            slot.set_whole(Some(block));
        }
        kept
    }

    /// Takes a run from the cpu's magazine, or from the block it has reserved.
    pub(crate) fn take_cached_run(
        &self,
        slot: Slot<'m>,
        pool: usize,
        wanted: RunRequest,
    ) -> Option<u64> {
        if slot.pool() != Some(pool) {
            return None;
        }
        let from_magazine = (wanted.frames <= 64)
            .then(|| slot.pop_run(self.shared.rows, wanted.frames, wanted.align))
            .flatten();
        from_magazine.or_else(|| self.shared.take_run_of(pool, slot.block()?, wanted, slot.moves()))
    }
}
