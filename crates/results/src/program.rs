//! What a program pays for memory of other nodes, and which of its regions it pays for.

mod find;
pub mod page;

pub use find::*;
