//! The cost of remote memory to a program, by region.

mod find;
pub mod page;

pub use find::*;
