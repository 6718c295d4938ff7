//! What is wrong with where memory lies now, as values, and what mends it.

pub mod document;
mod find;
pub mod page;

pub use find::*;
