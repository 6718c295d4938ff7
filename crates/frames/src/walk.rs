//! A walk over all memory, block by block.

use crate::block::{BlockWord, FULL, Token};
use crate::fences::Fences;
use crate::frames::Frames;
use crate::ids::{BLOCK_FRAMES, CpuIndex, Frame, NodeIndex, ZoneIndex};
use crate::map::Region;
use crate::sync::low_u16;

/// A 2 MiB block in its state when the walk passed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockView {
    /// The node that the block's frames belong to.
    pub node: NodeIndex,
    /// Zone of the block's frames.
    pub zone: ZoneIndex,
    /// The number of the block's first frame, a multiple of 512, whether it is managed or not.
    pub first: Frame,
    /// First managed frame of the block, 0 to 511.
    pub from: u64,
    /// End (exclusive) of the managed frames, 1 to 512.
    pub to: u64,
    /// True if the block is offline.
    pub offline: bool,
    /// The cpu that has reserved the block, if any.
    pub reserved: Option<CpuIndex>,
    /// The cpu that caches the whole block, if any.
    pub cached: Option<CpuIndex>,
    /// A bit for each frame that is free in the shared maps, lowest frame first.
    pub free: [u64; 8],
}

impl BlockView {
    /// Returns the number of managed frames.
    pub const fn managed(&self) -> u64 {
        self.to - self.from
    }

    /// Returns the number of frames that are free in the shared maps.
    pub fn free_frames(&self) -> u64 {
        self.free.iter().map(|row| u64::from(row.count_ones())).sum()
    }
}

impl<'m, F: Fences> Frames<'m, F> {
    /// Returns all blocks by address; a block that two ranges share is returned twice, each time
    /// with the frames of one range. Other cpus may be working: the blocks are read at different
    /// times.
    pub fn walk(&self) -> impl Iterator<Item = BlockView> {
        self.shared.map.all().flat_map(move |region| self.walk_region(region))
    }

    pub(crate) fn walk_region(&self, region: Region) -> impl Iterator<Item = BlockView> {
        let first = region.block_of(region.start);
        let end = region.block_of(region.end - 1) + 1;
        (first..end).map(move |block| self.view(region, block))
    }

    fn view(&self, region: Region, block: usize) -> BlockView {
        let word = self.shared.block(block);
        let zones = self.machine.zone_limits.len();
        let (from, to) = region.managed(word.first_frame());
        let holder = match word.token() {
            Token::Cpu(cpu) => Some(cpu),
            Token::Nobody | Token::Mover => None,
        };
        BlockView {
            node: NodeIndex(low_u16(region.pool / zones)),
            zone: ZoneIndex(low_u16(region.pool % zones).to_le_bytes()[0]),
            first: Frame::new(word.first_frame()),
            from,
            to,
            offline: word.is_offline(),
            reserved: holder.filter(|_| !word.is_cached()),
            cached: holder.filter(|_| word.is_cached()),
            free: self.free_bits(block, word),
        }
    }

    fn free_bits(&self, block: usize, word: BlockWord) -> [u64; 8] {
        // For a count of 512 the rows need not be read; with a count of 0 some bits may be set that
        // an allocation is about to clear, and these frames are as good as taken.
        match word.count() {
            FULL => [!0; 8],
            0 => [0; 8],
            _ => [0, 1, 2, 3, 4, 5, 6, 7].map(|row| self.shared.row(block, row)),
        }
    }
}

const _: () = assert!(BLOCK_FRAMES == FULL);
