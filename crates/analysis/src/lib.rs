//! What records show, as values: summaries of runs, comparisons, effects of studies,
//! scaling over ranks, outliers of fleets, health.
//!
//! Pure: no input or output, no clock, and no text for people. `numalab-report` puts
//! what is found here into words and pages.
#![forbid(unsafe_code)]

pub mod advice;
pub mod capture;
pub mod compare;
pub mod explore;
mod finding;
pub mod fleet;
pub mod health;
pub mod machine;
pub mod profile;
pub mod program;
pub mod run;
pub mod samples;
pub mod scaling;
pub mod self_test;
pub mod shape;
pub mod study;
pub mod tiering;
mod verdict;

pub use finding::Finding;
pub use verdict::VerdictWord;
