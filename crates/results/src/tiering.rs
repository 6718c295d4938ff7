//! Contradictions between figures of a probe of memory tiers.

pub mod document;
mod find;
pub mod page;

pub use find::*;
