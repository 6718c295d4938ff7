//! Mapping from a frame to its block: the regions and a lookup table for them.

use crate::ids::BLOCK_FRAMES;
use crate::slot::Slot;
use crate::sync::{Ordering::Relaxed, Word, index};

const START: usize = 0;
const END: usize = 1;
const BIAS: usize = 2;
const POOL: usize = 3;

/// Consecutive frames of one pool; its blocks are consecutive too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) pool: usize,
    /// The index of a block is the frame's block number plus this, with wrapping.
    bias: u64,
}

impl Region {
    pub(crate) const fn new(start: u64, end: u64, pool: usize, first_block: u64) -> Self {
        Self { start, end, pool, bias: first_block.wrapping_sub(start / BLOCK_FRAMES) }
    }

    /// Returns the index of the block that contains `frame`.
    #[inline(always)]
    pub(crate) const fn block_of(&self, frame: u64) -> usize {
        index((frame / BLOCK_FRAMES).wrapping_add(self.bias))
    }

    /// Returns the number of the first frame of the block at `block`, which may be before `start`.
    pub(crate) const fn first_frame(&self, block: usize) -> u64 {
        (block as u64).wrapping_sub(self.bias) * BLOCK_FRAMES
    }

    /// Returns the managed frames of a block (given by its first frame): from and to, 0 to 512.
    pub(crate) fn managed(&self, first: u64) -> (u64, u64) {
        let from = self.start.saturating_sub(first).min(BLOCK_FRAMES);
        let to = self.end.saturating_sub(first).min(BLOCK_FRAMES);
        (from, to)
    }
}

/// All regions by address. Written once, before the allocator is shared.
#[derive(Clone, Copy)]
pub(crate) struct Map<'m> {
    regions: &'m [[Word; 4]],
    lookup: &'m [Word],
    shift: u32,
}

impl<'m> Map<'m> {
    /// Writes the regions, which must be ascending and fill the table exactly.
    pub(crate) fn write(
        table: &'m [[Word; 4]],
        lookup: &'m [Word],
        shift: u32,
        regions: impl Iterator<Item = Region>,
    ) -> Self {
        for (entry, region) in table.iter().zip(regions) {
            entry[START].store(region.start, Relaxed);
            entry[END].store(region.end, Relaxed);
            entry[BIAS].store(region.bias, Relaxed);
            entry[POOL].store(region.pool as u64, Relaxed);
        }
        let map = Self { regions: table, lookup, shift };
        let mut first = 0;
        for (slot, entry) in lookup.iter().enumerate() {
            let frame = (slot as u64) << shift;
            while map.region(first).is_some_and(|region| region.end <= frame) {
                first += 1;
            }
            entry.store(first as u64, Relaxed);
        }
        map
    }

    /// Returns the region at an index of the table.
    #[inline(always)]
    pub(crate) fn region(&self, place: usize) -> Option<Region> {
        let entry = self.regions.get(place)?;
        Some(Region {
            start: entry[START].load(Relaxed),
            end: entry[END].load(Relaxed),
            bias: entry[BIAS].load(Relaxed),
            pool: index(entry[POOL].load(Relaxed)),
        })
    }

    pub(crate) fn find(&self, frame: u64) -> Option<Region> {
        self.find_place(frame).map(|(_, region)| region)
    }

    /// Returns the region that contains a frame, trying the slot's last region first: for
    /// consecutive frames of one region this saves two dependent loads each.
    #[inline(always)]
    pub(crate) fn find_from(&self, slot: Slot<'_>, frame: u64) -> Option<Region> {
        if let Some(region) = self.region(slot.region_hint())
            && (region.start..region.end).contains(&frame)
        {
            return Some(region);
        }
        let (place, region) = self.find_place(frame)?;
        slot.set_region_hint(place);
        Some(region)
    }

    fn find_place(&self, frame: u64) -> Option<(usize, Region)> {
        let mut place = index(self.lookup.get(index(frame >> self.shift))?.load(Relaxed));
        loop {
            let region = self.region(place)?;
            if frame < region.end {
                return (frame >= region.start).then_some((place, region));
            }
            place += 1;
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = Region> + use<'m> {
        let map = *self;
        (0..map.regions.len()).filter_map(move |place| map.region(place))
    }

    pub(crate) fn of_pool(&self, pool: usize) -> impl Iterator<Item = Region> + use<'m> {
        self.all().filter(move |region| region.pool == pool)
    }
}
