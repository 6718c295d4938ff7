//! The heap as bytes, to be inspected elsewhere. The README documents the format.

mod read;
mod text;
mod write;

pub use read::{BlockState, Dump, DumpBlock, DumpError, DumpPool};

/// The first bytes of a dump; the last is the version.
const MAGIC: [u8; 8] = *b"NLHEAP\0\x01";
/// Size in bytes of the header: the magic and four counts.
const HEADER_BYTES: usize = 24;
/// Size in bytes of a region's record.
const REGION_BYTES: usize = 24;
/// Size in bytes of a cpu's record.
const CACHE_BYTES: usize = 24;

// A block's head, 16 bits: its free frames in the low bits, then flags.
const COUNT: u16 = 0x3ff;
const OFFLINE: u16 = 1 << 10;
/// Flag: the block's eight rows follow.
const ROWS: u16 = 1 << 11;
const RESERVED: u16 = 1 << 12;
const CACHED: u16 = 1 << 13;
