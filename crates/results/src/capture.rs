//! A machine file out of what a run measured: topology, latencies, caches, transfers, load.

mod find;
pub mod page;

pub use find::*;
