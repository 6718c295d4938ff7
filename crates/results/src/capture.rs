//! Machine files captured from a measured run.

mod find;
pub mod page;

pub use find::*;
