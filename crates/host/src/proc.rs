//! What `/proc` says of processes: the one place that reads it.

mod maps;
mod numa_maps;
mod smaps;
mod stat;
mod status;

pub use maps::address_range;
pub use numa_maps::{NumaKind, NumaMapping, numa_maps};
pub(crate) use smaps::bytes_per_page_size;
pub use smaps::{PageSizes, SmapsMapping, smaps};
pub use stat::{Stat, processes};
pub use status::status_field;
