//! What a profile of a program's memory shows: who uses which region from where, and in which

mod find;
pub mod page;

pub use find::*;
