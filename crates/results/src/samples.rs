//! Two samples set side by side.

pub mod document;
mod find;
pub mod page;

pub use find::*;
