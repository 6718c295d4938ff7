//! From plans to records: threads on their cpus, memory on its node, windows
//! until the interval is narrow, and a result directory that survives anything.
//!
//! [`plan`] says what to measure, [`Session`] measures it cell by cell and hands
//! every finished cell to a [`Sink`], [`Store`] is the sink that keeps them. The
//! loops are `numalab-membench`'s; nothing is rendered here.
#![forbid(unsafe_code)]

mod error;
mod keep;
mod lab;
mod measure_run;
pub mod plan;
mod probe;
pub mod rank;
mod run;
mod sampling;
mod session;
mod store;

pub use error::MeasureError;
pub use keep::Keeper;
pub use lab::{Lab, Settings};
pub use measure_run::{Effort, MeasurePlan, beyond_caches};
pub use probe::{BalancingFound, BalancingProbe};
pub use session::{Session, Sink, Tally};
pub use store::{Store, StoreError, read};
