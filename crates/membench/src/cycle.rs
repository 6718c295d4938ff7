//! The plan of a chase: the successor of each line.
//!
//! The cycle comes from a keyed bijection E on line numbers, with inverse D: the line after x is
//! E(D(x) + 1). That is one cycle over all lines by construction. It needs no table, and every
//! line's successor can be computed independently, so the lines are written in address order and by
//! several threads at once.
#![expect(missing_docs, reason = "fields of errors that their names explain")]

mod build;
mod order;
mod permutation;
mod round;

pub use build::{BuiltPart, CyclePart, Parts};
pub use permutation::{BATCH, Permutation};
pub(crate) use round::mix;

use core::fmt;
use order::{Blocks, Order};

/// The number of consecutive pages after which lines would map to the cache sets of the first page
/// again.
const PAGES_PER_TURN: usize = 32;

/// The distance between the nodes of a cycle: the machine's cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LineSize {
    /// 64 bytes: most machines.
    #[default]
    Bytes64,
    /// 128 bytes: for machines with lines of that length, or that fetch lines in pairs.
    Bytes128,
}

impl LineSize {
    /// Returns the size in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            LineSize::Bytes64 => 64,
            LineSize::Bytes128 => 128,
        }
    }
}

/// The order in which a chase visits the lines of its memory. A latency is meaningful only together
/// with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// All lines in random order: DRAM latency with the page walks of that order.
    Random,
    /// All lines of a block in random order, the blocks in random order. With a block that the
    /// first TLB level covers, this is DRAM latency with TLB hits. Lines that do not fill a block
    /// are visited last.
    PageLocal {
        /// The size of a block, a power of two.
        block_bytes: usize,
    },
    /// One line of each page, pages in random order: every load walks the page table once there are
    /// more pages than TLB entries. The line is one further on in each consecutive page, and one
    /// more after each 32 pages, so that the lines do not compete for the same cache sets, even if
    /// pages are physically contiguous.
    OneLinePerPage {
        /// The size of a page, a power of two.
        page_bytes: usize,
    },
    /// All lines, one every `stride_bytes`, then those one line further on, and so on.
    Stride {
        /// The distance, a multiple of the line size.
        stride_bytes: usize,
    },
    /// All lines in address order, which shows the effect of the hardware prefetcher.
    Sequential,
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Random => f.write_str("random"),
            Pattern::PageLocal { block_bytes } => write!(f, "page-local:{block_bytes}"),
            Pattern::OneLinePerPage { page_bytes } => write!(f, "one-line-per-page:{page_bytes}"),
            Pattern::Stride { stride_bytes } => write!(f, "stride:{stride_bytes}"),
            Pattern::Sequential => f.write_str("sequential"),
        }
    }
}

/// A cycle over distinct lines, as a plan of a few words that is not yet in memory.
#[derive(Clone, Copy, Debug)]
pub struct Cycle {
    pattern: Pattern,
    size_bytes: usize,
    line_size: LineSize,
    seed: u64,
    order: Order,
}

impl Cycle {
    /// Plans a cycle through `size_bytes` of memory; an incomplete line (or page, with one line per
    /// page) at the end is left out. The same arguments give the same cycle.
    ///
    /// # Errors
    /// [`CycleError::TooSmall`] if not even one node fits, and [`CycleError::BadDistance`] if the
    /// pattern's block, page or stride does not satisfy the rules of its field.
    pub fn new(
        pattern: Pattern,
        size_bytes: usize,
        line_size: LineSize,
        seed: u64,
    ) -> Result<Cycle, CycleError> {
        let line = line_size.bytes();
        let lines = (size_bytes / line) as u64;
        let mut needed_bytes = line;
        let order = match pattern {
            Pattern::Random => Order::Random(Permutation::new(lines.max(1), seed)),
            Pattern::PageLocal { block_bytes } => {
                let block = power_of_two_lines(pattern, block_bytes, line)?;
                Order::Blocks(Blocks::new(lines.max(1), block, seed))
            }
            Pattern::OneLinePerPage { page_bytes } => {
                power_of_two_lines(pattern, page_bytes, line)?;
                needed_bytes = page_bytes;
                let pages = (size_bytes / page_bytes) as u64;
                Order::Random(Permutation::new(pages.max(1), seed))
            }
            Pattern::Stride { stride_bytes } => {
                let stride = whole_lines(pattern, stride_bytes, line)?;
                Order::Columns { nodes: lines, stride }
            }
            Pattern::Sequential => Order::Columns { nodes: lines, stride: 1 },
        };
        if size_bytes < needed_bytes {
            return Err(CycleError::TooSmall { pattern, size_bytes, needed_bytes });
        }
        Ok(Cycle { pattern, size_bytes, line_size, seed, order })
    }

    /// Returns the number of lines on the cycle.
    #[expect(clippy::cast_possible_truncation, reason = "came from a usize")]
    pub fn nodes(&self) -> usize {
        self.order.nodes() as usize
    }

    /// Returns the size of the memory that the cycle spans, in bytes.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// Returns the order of the cycle.
    pub fn pattern(&self) -> Pattern {
        self.pattern
    }

    /// Returns the distance of its nodes.
    pub fn line_size(&self) -> LineSize {
        self.line_size
    }

    /// Returns the seed that selected this cycle among those of its pattern and size.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the offset of `node`, in bytes from the first line.
    #[inline(always)]
    fn offset_bytes(&self, node: usize) -> usize {
        match self.pattern {
            Pattern::OneLinePerPage { page_bytes } => {
                // Both are powers of two.
                let lines_per_page = page_bytes / self.line_size.bytes();
                let line = (node + node / PAGES_PER_TURN) & (lines_per_page - 1);
                node * page_bytes + line * self.line_size.bytes()
            }
            _ => node * self.line_size.bytes(),
        }
    }
}

impl Cycle {
    /// Returns true if there is a node at `offset_bytes`.
    pub(crate) fn has_node_at(&self, offset_bytes: usize) -> bool {
        let node = match self.pattern {
            Pattern::OneLinePerPage { page_bytes } => offset_bytes / page_bytes,
            _ => offset_bytes / self.line_size.bytes(),
        };
        node < self.nodes() && self.offset_bytes(node) == offset_bytes
    }
}

fn power_of_two_lines(pattern: Pattern, bytes: usize, line: usize) -> Result<u64, CycleError> {
    if bytes.is_power_of_two() {
        whole_lines(pattern, bytes, line)
    } else {
        Err(CycleError::BadDistance { pattern, line_bytes: line })
    }
}

fn whole_lines(pattern: Pattern, bytes: usize, line: usize) -> Result<u64, CycleError> {
    if bytes >= line && bytes.is_multiple_of(line) {
        Ok((bytes / line) as u64)
    } else {
        Err(CycleError::BadDistance { pattern, line_bytes: line })
    }
}

/// Reasons why a cycle cannot be planned, built or proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CycleError {
    /// Not even one node fits.
    #[error(
        "{size_bytes} bytes are too few for a {pattern} cycle; expected at least {needed_bytes}"
    )]
    TooSmall { pattern: Pattern, size_bytes: usize, needed_bytes: usize },
    /// The pattern's block, page or stride does not fit the line size.
    #[error(
        "pattern {pattern} with lines of {line_bytes} bytes; expected a stride that is a \
         multiple of the line, a block or page that is also a power of two"
    )]
    BadDistance { pattern: Pattern, line_bytes: usize },
    /// The memory is smaller than the cycle.
    #[error("memory of {memory_bytes} bytes is too small for a cycle of {cycle_bytes} bytes")]
    MemoryTooSmall { memory_bytes: usize, cycle_bytes: usize },
    /// The memory does not start at a line of the cycle's size.
    #[error("memory at {address:#x}; expected a multiple of the line size {line_bytes}")]
    Misaligned { address: usize, line_bytes: usize },
    /// The given parts do not form one memory in address order.
    #[error(
        "parts of a cycle end at node {joined_nodes} of {nodes}, or belong to different \
             cycles"
    )]
    PartsDoNotJoin { joined_nodes: usize, nodes: usize },
    /// A walk did not visit every node once before it came back.
    #[error(
        "after {loads} loads the walk was at byte {offset_bytes}; expected a cycle of {nodes} \
         nodes that comes back to byte 0 with the last one"
    )]
    NotOneCycle { loads: usize, offset_bytes: usize, nodes: usize },
}
