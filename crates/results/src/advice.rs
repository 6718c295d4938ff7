//! Which placement is right for a program: what it does to its memory, what could be done about

mod find;
pub mod page;

pub use find::*;
