//! Comparison of two sets of runs, such as before and after a change of the machine.

pub mod document;
mod find;
pub mod page;

pub use find::*;
