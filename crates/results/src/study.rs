//! From samples in blocks to verdicts.

pub mod document;
mod find;
pub mod page;
pub mod plan;

pub use find::*;
