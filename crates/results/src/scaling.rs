//! Scaling over ranks: statistics of each step, groups of ranks, and findings.

mod find;
pub mod page;
mod ranks;

pub use find::*;
pub use ranks::RanksReport;
