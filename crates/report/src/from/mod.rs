//! Pages made from what was found.

pub mod fleet;
