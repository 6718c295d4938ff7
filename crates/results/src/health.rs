//! Health checks: a machine compared with its baseline.

mod find;
pub mod page;

pub use find::*;
