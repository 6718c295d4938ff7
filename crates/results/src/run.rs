//! Figures, findings and pages of one measuring run.

pub mod document;
mod find;
mod latency_table;
pub mod page;

pub use find::*;
pub use latency_table::latency_table;
