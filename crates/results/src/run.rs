//! Figures, findings and pages of one measuring run.

pub mod document;
mod find;
mod in_short;
mod latency_table;
pub mod page;

pub use find::*;
pub use in_short::in_short;
pub use latency_table::latency_table;
