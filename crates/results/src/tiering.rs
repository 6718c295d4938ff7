//! Figures of a probe of memory tiers that contradict each other.

mod find;
pub mod page;

pub use find::*;
