//! Whether a machine's nodes are as they should be, judged by what a test found.

mod find;
pub mod page;

pub use find::*;
