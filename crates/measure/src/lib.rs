//! From plans to records: threads on their cpus, memory on its node, windows
//! until the interval is narrow, and a result directory that survives anything.
//!
//! [`plan`] says what to measure, [`Session`] measures it cell by cell and hands
//! every finished cell to a [`RunRecorder`], which keeps it in its [`Store`]. Ranks
//! (`numalab-launch`) use the same [`Buffer`], [`Windows`], [`RoundLog`], [`Samples`] and
//! recorder: only who waits for whom differs. The loops are `numalab-membench`'s; nothing is rendered here.
#![forbid(unsafe_code)]

mod buffer;
mod context;
mod error;
mod health;
mod measure_run;
pub mod plan;
mod probe;
mod recorder;
mod run;
mod sampling;
pub mod self_test;
mod session;
mod share;
mod store;
mod tiering;

pub use buffer::{Buffer, MemoryClaim, MemorySource};
pub use context::{MeasureContext, Settings};
pub use error::MeasureError;
pub use health::health_cells;
pub use measure_run::{Effort, MeasurePlan, beyond_caches};
pub use probe::{BalancingFound, BalancingProbe};
pub use recorder::RunRecorder;
pub use run::chase::{BuiltChase, ChaseOrder, Windows};
pub use run::check_plan;
pub use run::stream::{RoundLog, Span, StreamRules, stream_over};
pub use sampling::{Reading, Samples, WindowLength, outcome_of, sample_here};
pub use session::{Observer, Session, Tally};
pub use store::{Store, StoreError, directory_name, read};
pub use tiering::{
    Heat, MovedPages, TierAccess, TierPlace, TieringFound, TieringProbe, fast_and_slow,
};
