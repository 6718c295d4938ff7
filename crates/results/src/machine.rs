//! A machine file compared with a run of the same machine, or of its replay.

pub mod document;
mod find;
pub mod page;
mod words;

pub use find::*;
