//! Figures of a probe of memory tiers that contradict each other.

pub mod document;
mod find;
pub mod page;

pub use find::*;
