//! Runs of frames in the shared maps: within a block, over whole blocks, and anywhere.

use crate::bits::{run_in_rows, run_in_word, span};
use crate::block::{FULL, List};
use crate::ids::{BLOCK_FRAMES, CpuIndex};
use crate::map::Region;
use crate::moves::Moves;
use crate::shared::Shared;
use crate::sync::index;

#[derive(Clone, Copy, Debug)]
pub(crate) struct RunRequest {
    /// Length in frames.
    pub(crate) frames: u64,
    /// Alignment of the first frame; a power of two.
    pub(crate) align: u64,
}

impl RunRequest {
    /// Returns true if such a run may be free although it is neither within a block nor within a
    /// run of wholly free blocks.
    pub(crate) const fn may_cross_blocks(&self) -> bool {
        let aligned = self.align >= self.frames.next_power_of_two();
        let whole = self.frames <= BLOCK_FRAMES || self.frames.is_multiple_of(BLOCK_FRAMES);
        !(aligned && whole)
    }
}

/// The part of a block that a range of frames covers: bits `from` to `to`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockPart {
    pub(crate) block: usize,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl BlockPart {
    /// Returns the parts, block by block, of the frames from `from` to `to` of a region.
    pub(crate) fn of(region: Region, from: u64, to: u64) -> impl Iterator<Item = Self> {
        let mut at = from;
        core::iter::from_fn(move || {
            let first = at / BLOCK_FRAMES * BLOCK_FRAMES;
            let end = to.min(first + BLOCK_FRAMES);
            let part = (at < to).then(|| Self {
                block: region.block_of(at),
                from: at - first,
                to: end - first,
            });
            at = end;
            part
        })
    }

    pub(crate) const fn frames(&self) -> u64 {
        self.to - self.from
    }

    /// Returns the rows touched, each with its bits.
    pub(crate) fn rows(self) -> impl Iterator<Item = (usize, u64)> {
        (self.from / 64..self.to.div_ceil(64)).map(move |row| {
            let start = row * 64;
            (index(row), span(self.from.saturating_sub(start), (self.to - start).min(64)))
        })
    }
}

impl Shared<'_> {
    /// Takes a run of at most 511 frames within one block, from the fullest blocks that may have
    /// it.
    pub(crate) fn take_run(
        &self,
        pool: usize,
        cpu: CpuIndex,
        wanted: RunRequest,
        moves: Moves<'_>,
    ) -> Option<u64> {
        let least = List::of(wanted.frames).unwrap_or(List::FULLEST);
        let each = &mut |block, _| self.take_run_of(pool, block, wanted, moves);
        self.lists.search(self.pool(pool), least, cpu, each)
    }

    /// Takes a run within a given block.
    pub(crate) fn take_run_of(
        &self,
        pool: usize,
        block: usize,
        wanted: RunRequest,
        moves: Moves<'_>,
    ) -> Option<u64> {
        loop {
            if self.block(block).count() < wanted.frames {
                return None;
            }
            let from = self.run_in_block(block, wanted)?;
            let part = BlockPart { block, from, to: from + wanted.frames };
            if self.take_part(pool, part, moves) {
                return Some(self.block(block).first_frame() + from);
            }
        }
    }

    fn run_in_block(&self, block: usize, wanted: RunRequest) -> Option<u64> {
        let RunRequest { frames, align } = wanted;
        if frames <= 64 && align.is_multiple_of(frames.next_power_of_two()) {
            // An aligned run that fits into a row stays within it.
            return (0..8).find_map(|row| {
                let start = run_in_word(self.row(block, row), frames, align.min(64))?;
                let at = row * 64 + start;
                at.is_multiple_of(align).then_some(at)
            });
        }
        run_in_rows(|row| self.row(block, row), 0, BLOCK_FRAMES, frames, align)
    }

    /// Takes exactly these frames of a block, or none. A claim that is given back hides frames from
    /// others for a moment: the caller is using its cache, has announced a move, or holds the
    /// freeze.
    pub(crate) fn take_part(&self, pool: usize, part: BlockPart, moves: Moves<'_>) -> bool {
        let frames = part.frames();
        if frames == FULL && self.take_whole(pool, part.block) {
            return true;
        }
        if self.claim(part.block, frames, frames) == 0 {
            return false;
        }
        let mut taken = 0;
        for (row, mask) in part.rows() {
            if !self.take_mask(part.block, row, mask) {
                break;
            }
            taken += 1;
        }
        let all = part.rows().count() == taken;
        if !all {
            for (row, mask) in part.rows().take(taken) {
                self.give_back(part.block, row, mask);
            }
            self.count(pool, part.block, frames, moves);
        }
        self.relist(pool, part.block, moves);
        all
    }

    /// Takes exactly the frames from `from` to `to` of a region, or none.
    pub(crate) fn take_range(&self, region: Region, from: u64, to: u64, moves: Moves<'_>) -> bool {
        for part in BlockPart::of(region, from, to) {
            if !self.take_part(region.pool, part, moves) {
                let first = self.block(part.block).first_frame() + part.from;
                for taken in BlockPart::of(region, from, first) {
                    self.put_part(region.pool, taken, moves);
                }
                return false;
            }
        }
        true
    }

    /// Brings a claimed block online with all its frames free: to frees, and to others that want to
    /// bring it online, it is offline until then.
    pub(crate) fn put_claimed(&self, pool: usize, part: BlockPart, moves: Moves<'_>) {
        for (row, mask) in part.rows() {
            self.give_back(part.block, row, mask);
        }
        let _moving = moves.begin();
        self.change(part.block, |word| word.with_offline(false).with_count(part.frames()));
        self.settle(pool, part.block, None);
    }

    /// Frees frames that the caller took itself.
    pub(crate) fn put_part(&self, pool: usize, part: BlockPart, moves: Moves<'_>) {
        if part.frames() == FULL && self.put_whole(pool, part.block, moves) {
            return;
        }
        for (row, mask) in part.rows() {
            self.give_back(part.block, row, mask);
        }
        self.count(pool, part.block, part.frames(), moves);
    }

    /// Takes a run of a whole block's length or more, from wholly free blocks.
    pub(crate) fn take_blocks(
        &self,
        pool: usize,
        wanted: RunRequest,
        moves: Moves<'_>,
    ) -> Option<u64> {
        self.map.of_pool(pool).find_map(|region| self.take_blocks_of(region, wanted, moves))
    }

    fn take_blocks_of(&self, region: Region, wanted: RunRequest, moves: Moves<'_>) -> Option<u64> {
        let pool = self.pool(region.pool);
        let blocks = wanted.frames.div_ceil(BLOCK_FRAMES);
        let align = (wanted.align / BLOCK_FRAMES).max(1);
        let first = region.block_of(region.start);
        let end = region.block_of(region.end - 1) + 1;
        // Bit 0 of the searched bitmap is an aligned frame, at or below the region.
        let base = region.first_frame(first) / BLOCK_FRAMES / align * align;
        let lead = region.first_frame(first) / BLOCK_FRAMES - base;
        let offset = (first - pool.first_block) as u64;
        let limit = pool.blocks.div_ceil(64) as u64;
        let word = |row: u64| {
            // The bits from `row * 64 - lead` on, counted from the region's first block.
            let at = (row * 64 + offset).wrapping_sub(lead);
            let read = |group: u64| {
                if group < limit { self.lists.whole_word(&pool, group) } else { 0 }
            };
            let (group, shift) = ((at.cast_signed() >> 6).cast_unsigned(), at % 64);
            let low = read(group) >> shift;
            if shift == 0 { low } else { low | read(group.wrapping_add(1)) << (64 - shift) }
        };
        let mut from = lead;
        let to = lead + (end - first) as u64;
        loop {
            let start = run_in_rows(word, from, to, blocks, align)?;
            let frame = (base + start) * BLOCK_FRAMES;
            if self.take_range(region, frame, frame + wanted.frames, moves) {
                return Some(frame);
            }
            from = start + 1;
        }
    }

    /// Takes the first such run of a pool below a frame, wherever it is; reads every row.
    pub(crate) fn take_anywhere(
        &self,
        pool: usize,
        below: u64,
        wanted: RunRequest,
        moves: Moves<'_>,
    ) -> Option<u64> {
        self.take_patiently(pool, below, wanted, moves, &|| 0)
    }

    /// Takes a run like [`Shared::take_anywhere`], but if the bits of a run are set and not all
    /// counted it tries again while `moves_seen` changes: a claim that is given back belongs to a
    /// move.
    pub(crate) fn take_patiently(
        &self,
        pool: usize,
        below: u64,
        wanted: RunRequest,
        moves: Moves<'_>,
        moves_seen: &impl Fn() -> u64,
    ) -> Option<u64> {
        self.map.of_pool(pool).find_map(|region| {
            let end = region.end.min(below);
            let base = region.start / wanted.align.max(64) * wanted.align.max(64);
            let row = |row: u64| {
                let frame = base + row * 64;
                if frame + 63 < region.start || frame >= region.end {
                    return 0;
                }
                self.row(region.block_of(frame.max(region.start)), frame / 64 % 8)
            };
            let mut from = region.start - base;
            let mut refused = None;
            loop {
                let to = end.checked_sub(base)?;
                let start = run_in_rows(row, from, to, wanted.frames, wanted.align)?;
                let frame = base + start;
                if self.take_range(region, frame, frame + wanted.frames, moves) {
                    return Some(frame);
                }
                let now = Some((start, moves_seen()));
                from = if refused == now { start + 1 } else { start };
                refused = now;
            }
        })
    }
}
