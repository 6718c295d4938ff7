//! Two samples compared.

pub mod document;
mod find;
mod numbers;
pub mod page;

pub use find::*;
pub use numbers::{NumbersError, numbers};
