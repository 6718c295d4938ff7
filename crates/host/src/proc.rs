//! What `/proc` says of processes: the one place that reads it.

mod maps;
mod numa_maps;
mod stat;

pub use maps::address_range;
pub use numa_maps::{NumaKind, NumaMapping, numa_maps};
pub use stat::{Stat, processes};
