//! Two samples compared, and published figures recomputed.

pub mod document;
mod find;
pub mod page;

pub use find::*;
