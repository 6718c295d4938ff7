//! Parser of a dump, which is untrusted: every length is checked before it is used.
#![expect(missing_docs, reason = "fields of errors that their names explain")]

use super::{
    CACHE_BYTES, CACHED, COUNT, HEADER_BYTES, MAGIC, OFFLINE, REGION_BYTES, RESERVED, ROWS,
};
use crate::ids::{BLOCK_FRAMES, Frame, NodeIndex, ZoneIndex};

/// Reasons why bytes are not a valid dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DumpError {
    /// The first bytes are not `NLHEAP`, 0, 1.
    #[error("not a heap dump of version 1: expected it to start with NLHEAP, 0, 1")]
    Magic,
    /// The bytes end within a record.
    #[error("truncated: a record at byte {offset} goes beyond the end")]
    Truncated { offset: usize },
    /// A region is empty, above the largest address, or of an unknown node or zone.
    #[error("region {index} is invalid: expected start < end, and a known node and zone")]
    Region { index: usize },
    /// The count of a block differs from the bits of its rows, or is above 512.
    #[error("block at byte {offset}: its number of free frames does not match its rows")]
    Block { offset: usize },
    /// There are bytes after the last record.
    #[error("{bytes} bytes follow the end of the dump")]
    Trailing { bytes: usize },
}

/// A dump that has been validated as a whole.
#[derive(Clone, Copy, Debug)]
pub struct Dump<'b> {
    nodes: usize,
    zone_limits: &'b [[u8; 8]],
    cpus: &'b [[u8; 2]],
    regions: &'b [[u8; REGION_BYTES]],
    blocks: &'b [u8],
    caches: &'b [[u8; CACHE_BYTES]],
}

/// Consecutive frames of a node in one zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DumpPool {
    /// The first frame.
    pub start: Frame,
    /// The frame after the last one.
    pub end: Frame,
    /// The node.
    pub node: NodeIndex,
    /// The zone.
    pub zone: ZoneIndex,
}

/// The state of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockState {
    /// In the shared maps.
    Shared,
    /// Reserved by a cpu.
    Reserved,
    /// Wholly free in a cpu's cache.
    Cached,
    /// Offline.
    Offline,
}

/// A block of 2 MiB, or the part of one that a region has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DumpBlock {
    /// Index of the region it belongs to, from 0.
    pub region: usize,
    /// The number of its first frame, a multiple of 512.
    pub first: Frame,
    /// Number of managed frames.
    pub managed: u64,
    /// Frames free in the shared maps: a bit for each, lowest first.
    pub free: [u64; 8],
    /// State of the block.
    pub state: BlockState,
}

impl DumpBlock {
    /// Returns the number of frames free in the shared maps.
    pub fn free_frames(&self) -> u64 {
        self.free.iter().map(|row| u64::from(row.count_ones())).sum()
    }
}

struct Reader<'b> {
    bytes: &'b [u8],
    offset: usize,
}

impl<'b> Reader<'b> {
    fn take(&mut self, length: usize) -> Result<&'b [u8], DumpError> {
        let truncated = DumpError::Truncated { offset: self.offset };
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or(truncated)?;
        self.bytes = rest;
        self.offset += length;
        Ok(taken)
    }

    fn table<const N: usize>(&mut self, records: usize) -> Result<&'b [[u8; N]], DumpError> {
        let truncated = DumpError::Truncated { offset: self.offset };
        Ok(self.take(records.checked_mul(N).ok_or(truncated)?)?.as_chunks().0)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DumpError> {
        Ok(self.table::<N>(1)?[0])
    }

    fn count(&mut self) -> Result<usize, DumpError> {
        Ok(u32::from_le_bytes(self.array()?) as usize)
    }

    /// Reads a block's head and rows.
    fn block(&mut self) -> Result<(u16, [u64; 8]), DumpError> {
        let offset = self.offset;
        let head = u16::from_le_bytes(self.array()?);
        let count = head & COUNT;
        if head & ROWS == 0 {
            let rows = match count {
                0 => [0; 8],
                512 => [!0; 8],
                _ => return Err(DumpError::Block { offset }),
            };
            return Ok((head, rows));
        }
        let mut rows = [0; 8];
        for row in &mut rows {
            *row = u64::from_le_bytes(self.array()?);
        }
        let bits: u32 = rows.iter().map(|row| row.count_ones()).sum();
        let agree = bits == u32::from(count);
        if agree { Ok((head, rows)) } else { Err(DumpError::Block { offset }) }
    }
}

impl<'b> Dump<'b> {
    /// Validates a whole dump.
    ///
    /// # Errors
    /// The problem and its position.
    pub fn parse(bytes: &'b [u8]) -> Result<Self, DumpError> {
        let mut reader = Reader { bytes, offset: 0 };
        if reader.array::<8>() != Ok(MAGIC) {
            return Err(DumpError::Magic);
        }
        let nodes = reader.count()?;
        let (zones, cpus, regions) = (reader.count()?, reader.count()?, reader.count()?);
        debug_assert_eq!(reader.offset, HEADER_BYTES);
        let mut dump = Self {
            nodes,
            zone_limits: reader.table(zones)?,
            cpus: reader.table(cpus)?,
            regions: reader.table(regions)?,
            blocks: &[],
            caches: &[],
        };
        let start = reader.bytes;
        for (index, pool) in dump.pools().enumerate() {
            let known = pool.node.at() < nodes && usize::from(pool.zone.0) < zones;
            if !known || pool.start >= pool.end || pool.end.number() > 1 << 52 {
                return Err(DumpError::Region { index });
            }
            for _ in 0..blocks_of(&pool) {
                reader.block()?;
            }
        }
        dump.blocks = &start[..start.len() - reader.bytes.len()];
        dump.caches = reader.table(cpus)?;
        match reader.bytes.len() {
            0 => Ok(dump),
            bytes => Err(DumpError::Trailing { bytes }),
        }
    }

    /// Returns the number of nodes.
    pub const fn nodes(&self) -> usize {
        self.nodes
    }

    /// Returns the exclusive upper address of each zone, in bytes.
    pub fn zone_limits(&self) -> impl Iterator<Item = u64> + use<'b> {
        self.zone_limits.iter().map(|limit| u64::from_le_bytes(*limit))
    }

    /// Returns the node of each cpu.
    pub fn cpus(&self) -> impl Iterator<Item = NodeIndex> + use<'b> {
        self.cpus.iter().map(|node| NodeIndex(u16::from_le_bytes(*node)))
    }

    /// Returns the regions, by address.
    pub fn pools(&self) -> impl Iterator<Item = DumpPool> + use<'b> {
        self.regions.iter().map(|record| {
            let (words, rest) = record.as_chunks::<8>();
            debug_assert!(rest.is_empty());
            let [a, b, zone, ..] = words[2];
            DumpPool {
                start: Frame::new(u64::from_le_bytes(words[0])),
                end: Frame::new(u64::from_le_bytes(words[1])),
                node: NodeIndex(u16::from_le_bytes([a, b])),
                zone: ZoneIndex(zone),
            }
        })
    }

    /// Returns the blocks, region by region.
    pub fn blocks(&self) -> impl Iterator<Item = DumpBlock> + use<'b> {
        let mut reader = Reader { bytes: self.blocks, offset: 0 };
        let places = self.pools().enumerate().flat_map(|(region, pool)| {
            (0..blocks_of(&pool)).map(move |block| (region, pool, block))
        });
        places.map_while(move |(region, pool, block)| {
            let (head, free) = reader.block().ok()?;
            let first = (pool.start.number() / BLOCK_FRAMES + block) * BLOCK_FRAMES;
            let end = pool.end.number().min(first + BLOCK_FRAMES);
            let managed = end - pool.start.number().max(first);
            Some(DumpBlock { region, first: Frame::new(first), managed, free, state: state(head) })
        })
    }

    /// Returns each cpu's magazine: its row's first frame, and a bit for each free frame.
    pub fn magazines(&self) -> impl Iterator<Item = (Frame, u64)> + use<'b> {
        self.caches.iter().map(|record| {
            let words = record.as_chunks::<8>().0;
            (Frame::new(u64::from_le_bytes(words[0])), u64::from_le_bytes(words[1]))
        })
    }

    /// Returns each cpu's cached whole block.
    pub fn whole_blocks(&self) -> impl Iterator<Item = Option<Frame>> + use<'b> {
        self.caches.iter().map(|record| {
            let whole = u64::from_le_bytes(record.as_chunks::<8>().0[2]);
            whole.checked_sub(1).map(Frame::new)
        })
    }
}

fn blocks_of(pool: &DumpPool) -> u64 {
    pool.end.number().div_ceil(BLOCK_FRAMES) - pool.start.number() / BLOCK_FRAMES
}

const fn state(head: u16) -> BlockState {
    if head & OFFLINE != 0 {
        BlockState::Offline
    } else if head & CACHED != 0 {
        BlockState::Cached
    } else if head & RESERVED != 0 {
        BlockState::Reserved
    } else {
        BlockState::Shared
    }
}
