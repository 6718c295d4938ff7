//! Verdicts of studies, from samples in blocks.

pub mod document;
mod find;
pub mod page;
pub mod plan;

pub use find::*;
