//! Parsers of `/proc`.

mod fields;
mod maps;
mod masks;
mod memory_text;
mod numa_maps;
mod page_bits;
mod page_moves;
mod smaps;
mod stat;

pub use fields::{bytes, counters, field};
pub use maps::{MapsLine, address_range, maps};
pub use masks::allowed;
pub(crate) use masks::mask;
pub use memory_text::{has_memory, memory_text};
pub use numa_maps::{NumaKind, NumaMapping, PageBytes, numa_maps};
pub use page_bits::{ClearedBits, clear_bits, has_soft_dirty, soft_dirty_pages};
pub use page_moves::PageMoves;
pub(crate) use smaps::bytes_per_page_size;
pub use smaps::{SmapsMapping, smaps, total_page_sizes};
pub use stat::{Stat, descendants, processes, threads};
