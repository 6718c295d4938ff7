//! Profiles of a program's memory accesses: regions, their users, and phases.

mod find;
pub mod page;

pub use find::*;
