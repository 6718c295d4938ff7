//! Outliers of a fleet.

mod find;
pub mod page;

pub use find::*;
