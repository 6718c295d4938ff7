//! Freeing: every frame is checked before the first is changed.

use crate::block::Token;
use crate::error::{FreeError, FreePlace};
use crate::fences::Fences;
use crate::frames::Frames;
use crate::ids::Owner;
use crate::ids::{BLOCK_FRAMES, CpuIndex, Frame, MAX_RUN_FRAMES, Order};
use crate::map::Region;
use crate::runs::BlockPart;
use crate::slot::{Push, Slot};

impl<'m, F: Fences> Frames<'m, F> {
    /// Frees one frame.
    ///
    /// # Errors
    /// The reason; nothing has changed.
    #[inline(always)]
    pub fn free_frame(&self, cpu: CpuIndex, frame: Frame) -> Result<(), FreeError> {
        self.free_one(cpu, frame, Owner(0))
    }

    /// Frees a block of an order.
    ///
    /// # Errors
    /// The reason; nothing has changed.
    #[inline(always)]
    pub fn free(&self, cpu: CpuIndex, frame: Frame, order: Order) -> Result<(), FreeError> {
        if !frame.number().is_multiple_of(order.frames()) {
            return Err(FreeError::Misaligned { frame, order });
        }
        self.free_run(cpu, frame, order.frames())
    }

    /// Frees consecutive frames: a whole allocated run, or any part of one.
    ///
    /// # Errors
    /// The reason; nothing has changed. (Only if two cpus free the same frames at the same time may
    /// the frames before the one in the error have been freed.)
    #[inline(always)]
    pub fn free_run(&self, cpu: CpuIndex, frame: Frame, frames: u64) -> Result<(), FreeError> {
        self.free_owned(cpu, frame, frames, Owner(0))
    }

    /// Frees frames like [`Frames::free_run`], for the owner given in the request; in builds that
    /// are not `checked` the owner is ignored.
    ///
    /// # Errors
    /// The reason; nothing has changed.
    #[inline(always)]
    pub fn free_owned(
        &self,
        cpu: CpuIndex,
        frame: Frame,
        frames: u64,
        owner: Owner,
    ) -> Result<(), FreeError> {
        if frames == 1 {
            self.free_one(cpu, frame, owner)
        } else {
            self.free_several(cpu, frame, frames, owner)
        }
    }

    #[inline(never)]
    fn free_several(
        &self,
        cpu: CpuIndex,
        frame: Frame,
        frames: u64,
        owner: Owner,
    ) -> Result<(), FreeError> {
        let slot = self.slot(cpu).ok_or_else(|| self.no_such_cpu(cpu))?;
        if frames == 0 || frames > MAX_RUN_FRAMES {
            return Err(FreeError::RunLength { frames });
        }
        let (first, end) = (frame.number(), frame.number().saturating_add(frames));
        self.tags.check(&self.shared, first, frames, owner)?;
        if self.free_cached(cpu, slot, first, frames) {
            return Ok(());
        }
        self.each_part(first, end, |_, part| self.verify(cpu, part))?;
        self.tags.take_back(&self.shared, first, frames);
        self.each_part(first, end, |region, part| self.put(slot, region, part))
    }

    #[inline(always)]
    fn free_one(&self, cpu: CpuIndex, frame: Frame, owner: Owner) -> Result<(), FreeError> {
        let Some(slot) = self.slot(cpu) else {
            return Err(self.no_such_cpu(cpu));
        };
        self.tags.check(&self.shared, frame.number(), 1, owner)?;
        // The tag is removed first: once the frame is free, its tag belongs to the next owner. If
        // the frame turns out to be free already, it has none.
        self.tags.take_back(&self.shared, frame.number(), 1);
        if slot.has_row_of(frame.number()) {
            self.free_into_magazine(cpu, slot, frame)
        } else {
            self.free_into_maps(cpu, slot, frame)
        }
    }

    #[inline(always)]
    fn free_into_magazine(
        &self,
        cpu: CpuIndex,
        slot: Slot<'m>,
        frame: Frame,
    ) -> Result<(), FreeError> {
        if let Some(_busy) = self.enter(slot)
            && slot.has_row_of(frame.number())
        {
            match slot.push(self.shared.rows, frame.number(), 1) {
                Ok(()) => return Ok(()),
                Err(Push::InMagazine) => {
                    return Err(FreeError::AlreadyFree { frame, place: FreePlace::Cache(cpu) });
                }
                // Free in the shared maps, or in the part of the row that belongs to another
                // region.
                Err(Push::Elsewhere) => {}
            }
        }
        self.free_into_maps(cpu, slot, frame)
    }

    #[inline]
    fn free_into_maps(&self, cpu: CpuIndex, slot: Slot<'m>, frame: Frame) -> Result<(), FreeError> {
        let number = frame.number();
        let Some(region) = self.shared.map.find_from(slot, number) else {
            return Err(FreeError::NotManaged { frame });
        };
        let block = region.block_of(number);
        if self.shared.block(block).needs_care() {
            self.verify_frame(cpu, number, block)?;
        }
        if !self.shared.put_bit(block, number) {
            return Err(FreeError::AlreadyFree { frame, place: FreePlace::Shared });
        }
        self.shared.count_one(region.pool, block, slot.moves());
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn verify_frame(&self, cpu: CpuIndex, number: u64, block: usize) -> Result<(), FreeError> {
        let from = number % BLOCK_FRAMES;
        self.verify(cpu, BlockPart { block, from, to: from + 1 })
    }

    /// Frees a run into the cpu's cache: into the magazine's row, or as its whole block. All other
    /// cases, mistakes in particular, are left to the slow path.
    fn free_cached(&self, cpu: CpuIndex, slot: Slot<'m>, first: u64, frames: u64) -> bool {
        let in_row = first % 64 + frames <= 64 && slot.has_row_of(first);
        let whole = frames == BLOCK_FRAMES && first.is_multiple_of(BLOCK_FRAMES);
        if !in_row && !whole {
            return false;
        }
        let Some(_busy) = self.enter(slot) else {
            return false;
        };
        if in_row {
            let pushed =
                slot.has_row_of(first) && slot.push(self.shared.rows, first, frames).is_ok();
            if pushed {
                self.tags.take_back(&self.shared, first, frames);
            }
            return pushed;
        }
        let Some(region) = self.shared.map.find(first) else {
            return false;
        };
        let home = region.pool == slot.home() && region.end - first >= BLOCK_FRAMES;
        if !home || !self.cache_whole(cpu, slot, region.block_of(first)) {
            return false;
        }
        self.tags.take_back(&self.shared, first, frames);
        true
    }

    /// Calls `each` for the parts of the frames, block by block, until one fails.
    fn each_part(
        &self,
        first: u64,
        end: u64,
        mut each: impl FnMut(Region, BlockPart) -> Result<(), FreeError>,
    ) -> Result<(), FreeError> {
        let mut at = first;
        while at < end {
            let not_managed = FreeError::NotManaged { frame: Frame::new(at) };
            let region = self.shared.map.find(at).ok_or(not_managed)?;
            let to = end.min(region.end);
            BlockPart::of(region, at, to).try_for_each(|part| each(region, part))?;
            at = to;
        }
        Ok(())
    }

    /// Refuses frames that are free or offline.
    fn verify(&self, cpu: CpuIndex, part: BlockPart) -> Result<(), FreeError> {
        let word = self.shared.block(part.block);
        let frame = |bit: u64| Frame::new(word.first_frame() + bit);
        if word.is_offline() {
            return Err(FreeError::Offline { frame: frame(part.from) });
        }
        for (row, mask) in part.rows() {
            let free = self.shared.row(part.block, row as u64) & mask;
            if free != 0 {
                let frame = frame(row as u64 * 64 + u64::from(free.trailing_zeros()));
                return Err(FreeError::AlreadyFree { frame, place: FreePlace::Shared });
            }
        }
        let Token::Cpu(holder) = word.token() else {
            return Ok(());
        };
        let cached = (part.from..part.to).map(frame).find(|&f| self.caches(holder, f, part.block));
        match cached {
            Some(frame) if self.confirm(cpu, holder, frame, part.block) => {
                let place = FreePlace::Cache(holder);
                Err(FreeError::AlreadyFree { frame, place })
            }
            _ => Ok(()),
        }
    }

    /// Returns true if a cpu seems to have a frame in its cache.
    fn caches(&self, holder: CpuIndex, frame: Frame, block: usize) -> bool {
        self.shared.block(block).is_cached()
            || self.slot(holder).is_some_and(|slot| slot.seems_to_hold(frame.number()))
    }

    /// Checks again while no cpu is using its cache; a nested call relies on the first check.
    #[cold]
    fn confirm(&self, cpu: CpuIndex, holder: CpuIndex, frame: Frame, block: usize) -> bool {
        let Some(_freeze) = self.freeze(cpu) else {
            return true;
        };
        self.caches(holder, frame, block)
    }

    fn put(&self, slot: Slot<'m>, region: Region, part: BlockPart) -> Result<(), FreeError> {
        if part.frames() == BLOCK_FRAMES
            && self.shared.put_whole(region.pool, part.block, slot.moves())
        {
            return Ok(());
        }
        let first = self.shared.block(part.block).first_frame();
        let mut frames = 0;
        let mut refused = Ok(());
        for (row, mask) in part.rows() {
            if let Err(twice) = self.shared.put_bits(part.block, row, mask) {
                let bit = row as u64 * 64 + u64::from(twice.trailing_zeros());
                let frame = Frame::new(first + bit);
                refused = Err(FreeError::AlreadyFree { frame, place: FreePlace::Shared });
                break;
            }
            frames += u64::from(mask.count_ones());
        }
        if frames > 0 {
            self.shared.count(region.pool, part.block, frames, slot.moves());
        }
        refused
    }

    #[cold]
    fn no_such_cpu(&self, cpu: CpuIndex) -> FreeError {
        FreeError::UnknownCpu { cpu, cpus: self.slots.len() }
    }
}
