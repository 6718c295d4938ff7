//! Scaling over ranks: figures of each step, ranks in groups, and what is seen in them.

mod find;
pub mod page;
mod ranks;

pub use find::*;
pub use ranks::RanksReport;
