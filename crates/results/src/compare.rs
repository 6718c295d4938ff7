//! Runs compared: what the machine did before, and what it does now.

pub mod document;
mod find;
pub mod page;

pub use find::*;
