//! A self-test of a machine's nodes, and its judgement.

mod find;
pub mod page;

pub use find::*;
