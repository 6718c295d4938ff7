//! Whether a machine is as good as its baseline: what a health check finds.

mod find;
pub mod page;

pub use find::*;
