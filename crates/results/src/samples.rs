//! Two samples compared.

pub mod document;
mod find;
pub mod page;

pub use find::*;
