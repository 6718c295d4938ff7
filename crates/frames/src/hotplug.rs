//! Onlining and offlining of declared ranges.

use crate::block::Token;
use crate::error::RangeError;
use crate::fences::Fences;
use crate::frames::Frames;
use crate::ids::{BLOCK_FRAMES, CpuIndex, Frame};
use crate::map::Region;
use crate::runs::BlockPart;
use crate::slot::Slot;

impl<'m, F: Fences> Frames<'m, F> {
    /// Makes the frames of a declared, offline range free. Its ends are multiples of 512 frames or
    /// ends of declared ranges.
    ///
    /// # Errors
    /// The reason; nothing has changed.
    pub fn online(&self, cpu: CpuIndex, start: Frame, frames: u64) -> Result<(), RangeError> {
        let slot = self.check_range(cpu, start, frames, true)?;
        let (from, to) = (start.number(), start.number() + frames);
        for (_, part) in self.range_parts(from, to) {
            // Since the check, another call may have begun to bring the block online.
            if !self.shared.claim_offline(part.block) {
                let frame = self.shared.block(part.block).first_frame() + part.from;
                for (_, part) in self.range_parts(from, frame) {
                    self.shared.change(part.block, |word| word.with_token(Token::Nobody));
                }
                return Err(RangeError::StateAlready { frame: Frame::new(frame) });
            }
        }
        for (region, part) in self.range_parts(from, to) {
            self.shared.put_claimed(region.pool, part, slot.moves());
        }
        Ok(())
    }

    /// Takes a range offline if all its frames are free; the caches are emptied for it. Its ends
    /// are multiples of 512 frames or ends of declared ranges.
    ///
    /// # Errors
    /// The reason; nothing has changed.
    pub fn offline(&self, cpu: CpuIndex, start: Frame, frames: u64) -> Result<(), RangeError> {
        let slot = self.check_range(cpu, start, frames, false)?;
        let (from, to) = (start.number(), start.number() + frames);
        let _freeze = self.freeze(cpu).ok_or(RangeError::Nested)?;
        self.drain();
        for (region, part) in self.range_parts(from, to) {
            if self.shared.take_part(region.pool, part, slot.moves()) {
                continue;
            }
            let first = self.shared.block(part.block).first_frame();
            let frame = (part.from..part.to)
                .find(|bit| self.shared.row(part.block, bit / 64) >> (bit % 64) & 1 == 0)
                .map_or(first + part.from, |bit| first + bit);
            for (region, part) in self.range_parts(from, first + part.from) {
                self.shared.put_part(region.pool, part, slot.moves());
            }
            return Err(RangeError::InUse { frame: Frame::new(frame) });
        }
        for (_, part) in self.range_parts(from, to) {
            self.shared.change(part.block, |word| word.with_offline(true));
        }
        Ok(())
    }

    /// Returns the parts, block by block, of frames that are all declared.
    fn range_parts(&self, from: u64, to: u64) -> impl Iterator<Item = (Region, BlockPart)> {
        self.shared.map.all().filter(move |region| region.start < to && from < region.end).flat_map(
            move |region| {
                let (from, to) = (from.max(region.start), to.min(region.end));
                BlockPart::of(region, from, to).map(move |part| (region, part))
            },
        )
    }

    fn check_range(
        &self,
        cpu: CpuIndex,
        start: Frame,
        frames: u64,
        offline: bool,
    ) -> Result<Slot<'m>, RangeError> {
        let cpus = self.slots.len();
        let slot = self.slot(cpu).ok_or(RangeError::UnknownCpu { cpu, cpus })?;
        let (from, to) = (start.number(), start.number().saturating_add(frames));
        let mut at = from;
        while at < to {
            let not_managed = RangeError::NotManaged { frame: Frame::new(at) };
            at = self.shared.map.find(at).ok_or(not_managed)?.end;
        }
        let is_end = |frame: u64| {
            let ends = |region: Region| region.start == frame || region.end == frame;
            frame.is_multiple_of(BLOCK_FRAMES) || self.shared.map.all().any(ends)
        };
        if let Some(end) = [from, to].into_iter().find(|&end| !is_end(end)) {
            return Err(RangeError::Misaligned { frame: Frame::new(end) });
        }
        for (_, part) in self.range_parts(from, to) {
            let word = self.shared.block(part.block);
            if word.is_offline() != offline {
                let frame = Frame::new(word.first_frame() + part.from);
                return Err(RangeError::StateAlready { frame });
            }
        }
        Ok(slot)
    }
}
