//! Division of the caller's metadata buffer.

use crate::block::List;
use crate::error::InitError;
use crate::ids::BLOCK_FRAMES;
use crate::machine::Machine;
use crate::sync::{Word, index};

/// Number of words in two cache lines: no word that one cpu writes shares them with a word of
/// another cpu.
const LINES: usize = 16;

/// Number of tag words per block, one per frame, in `checked` builds: the rest of the run, and its
/// owner.
const TAGS_PER_BLOCK: usize = if cfg!(feature = "checked") { 512 } else { 0 };

#[derive(Clone, Copy, Debug)]
pub(crate) struct MetadataLayout {
    pub(crate) cpus: usize,
    pub(crate) pools: usize,
    pub(crate) regions: usize,
    pub(crate) lookup: usize,
    /// Base-2 logarithm of the frames per entry of the lookup table.
    pub(crate) lookup_shift: u32,
    pub(crate) blocks: usize,
    pub(crate) groups: usize,
    pub(crate) summaries: usize,
}

pub(crate) struct Parts<'m> {
    pub(crate) control: &'m [Word],
    pub(crate) slots: &'m [[Word; 32]],
    pub(crate) pools: &'m [[Word; 8]],
    pub(crate) regions: &'m [[Word; 4]],
    pub(crate) lookup: &'m [Word],
    pub(crate) rows: &'m [[Word; 8]],
    pub(crate) blocks: &'m [Word],
    pub(crate) groups: &'m [[Word; 8]],
    pub(crate) whole: &'m [Word],
    pub(crate) summaries: &'m [Word],
    pub(crate) tags: &'m [Word],
}

impl MetadataLayout {
    pub(crate) fn of(machine: &Machine<'_>) -> Self {
        let (mut regions, mut blocks, mut end) = (0_usize, 0, 1);
        for piece in machine.pieces() {
            regions += 1;
            blocks += index(piece.blocks());
            end = piece.end;
        }
        let (mut groups, mut summaries) = (0, 0);
        for pool in 0..machine.pools() {
            let pool_groups = pool_groups(machine, pool);
            groups += pool_groups;
            summaries += pool_groups.div_ceil(64) * List::COUNT;
        }
        // At least eight entries per region, so that few regions share an entry.
        let entries = (regions * 8).max(64).next_power_of_two();
        let lookup_shift = (end.next_power_of_two().ilog2()).saturating_sub(entries.ilog2());
        Self {
            cpus: machine.cpus.len(),
            pools: machine.pools(),
            regions,
            lookup: index((end - 1) >> lookup_shift) + 1,
            lookup_shift,
            blocks,
            groups,
            summaries,
        }
    }

    /// Returns the number of words of each part, in the order of the buffer.
    fn words(&self) -> [usize; 11] {
        [
            LINES,
            self.cpus * 32,
            self.pools * 8,
            self.regions * 4,
            self.lookup,
            self.blocks * 8,
            self.blocks,
            self.groups * 8,
            self.groups,
            self.summaries,
            self.blocks * TAGS_PER_BLOCK,
        ]
        .map(|words| words.next_multiple_of(LINES))
    }

    /// Returns a number of words that is enough for a buffer of any alignment.
    pub(crate) fn total(&self) -> usize {
        self.words().iter().sum::<usize>() + LINES
    }

    /// Divides a buffer with arbitrary content.
    pub(crate) fn divide<'m>(&self, buffer: &'m [Word]) -> Result<Parts<'m>, InitError> {
        if buffer.len() < self.total() {
            return Err(InitError::Metadata { words: buffer.len(), expected: self.total() });
        }
        let line_bytes = LINES * size_of::<u64>();
        let misaligned = buffer.as_ptr().addr() % line_bytes / size_of::<u64>();
        let mut rest = &buffer[(LINES - misaligned) % LINES..];
        let parts = self.words().map(|words| {
            let (part, after) = rest.split_at(words);
            rest = after;
            part
        });
        let [control, slots, pools, regions, lookup, rows, blocks, groups, whole, sums, tags] =
            parts;
        Ok(Parts {
            control,
            slots: &slots.as_chunks().0[..self.cpus],
            pools: &pools.as_chunks().0[..self.pools],
            regions: &regions.as_chunks().0[..self.regions],
            lookup: &lookup[..self.lookup],
            rows: &rows.as_chunks().0[..self.blocks],
            blocks: &blocks[..self.blocks],
            groups: &groups.as_chunks().0[..self.groups],
            whole: &whole[..self.groups],
            summaries: &sums[..self.summaries],
            tags: &tags[..self.blocks * TAGS_PER_BLOCK],
        })
    }
}

/// Returns the number of groups of 64 blocks in a pool.
pub(crate) fn pool_groups(machine: &Machine<'_>, pool: usize) -> usize {
    let blocks: u64 =
        machine.pieces().filter(|piece| piece.pool == pool).map(|piece| piece.blocks()).sum();
    index(blocks).div_ceil(64)
}

const _: () = assert!(BLOCK_FRAMES == 8 * 64, "a block's rows are eight words");
