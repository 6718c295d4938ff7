//! A machine file next to what a run of the same machine, or of its replay, measured.

pub mod document;
mod find;
pub mod page;

pub use find::*;
