//! The cost of remote memory to a program, by region.

pub mod document;
mod find;
pub mod page;

pub use find::*;
