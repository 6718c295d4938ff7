//! From plans to records: threads on their cpus, memory on its node, windows
//! until the interval is narrow, and a result directory that survives anything.
//!
//! [`plan`] says what to measure, [`Session`] measures it cell by cell and hands
//! every finished cell to a [`RunRecorder`], which keeps it in its [`Store`]. The
//! loops are `numalab-membench`'s; nothing is rendered here.
#![forbid(unsafe_code)]

mod context;
mod error;
mod measure_run;
pub mod plan;
mod probe;
pub mod rank;
mod recorder;
mod run;
mod sampling;
mod session;
mod store;

pub use context::{MeasureContext, Settings};
pub use error::MeasureError;
pub use measure_run::{Effort, MeasurePlan, beyond_caches};
pub use probe::{BalancingFound, BalancingProbe};
pub use recorder::RunRecorder;
pub use run::check_plan;
pub use session::{Observer, Session, Tally};
pub use store::{Store, StoreError, directory_name, read};
