//! Two samples set side by side, and published figures recomputed.

pub mod document;
mod find;
pub mod page;

pub use find::*;
