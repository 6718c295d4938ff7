//! Problems of current memory placement, and their remedies.

pub mod document;
mod find;
pub mod page;

pub use find::*;
