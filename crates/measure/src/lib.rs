//! From plans to records: threads on their cpus, memory on its node, windows
//! until the interval is narrow, and a result directory that survives anything.
//!
//! [`kind`] says what to measure and how, [`Session`] measures it cell by cell and hands
//! every finished cell to a [`RunRecorder`], which keeps it in its [`Store`]. Ranks
//! (`numalab-launch`) use the same [`Buffer`], [`Windows`], [`RoundLog`], [`Samples`] and
//! recorder: only who waits for whom differs. The loops are `numalab-membench`'s; nothing is rendered here.
#![forbid(unsafe_code)]

mod buffer;
mod chase;
mod context;
mod error;
mod health;
pub mod kind;
mod measure_run;
mod measured;
mod plan;
mod probe;
mod recorder;
mod sampling;
mod scope;
pub mod self_test;
mod session;
mod share;
mod store;
mod stream;
mod survey;
mod team;
#[cfg(test)]
mod test_machines;
mod tiering;

pub use buffer::{Buffer, MemoryClaim, MemorySource};
pub use chase::{BuiltChase, ChaseOrder, Windows};
pub use context::{MeasureContext, Settings};
pub use error::MeasureError;
pub use health::health_cells;
pub use measure_run::{MeasurePlan, beyond_caches};
pub use plan::{check_plan, estimate_plan};
pub use probe::{BalancingFound, BalancingProbe};
pub use recorder::RunRecorder;
pub use sampling::{Reading, Samples, WindowLength, outcome_of, sample_here};
pub use scope::{MatrixShape, Scope, ScopeError, all_workers, matrix_workers};
pub use session::{Observer, Session, Tally};
pub use store::{Store, StoreError, directory_name, read};
pub use stream::{RoundLog, Span, StreamRules, isa_name, stream_over};
pub use tiering::{
    Heat, MovedPages, TierAccess, TierPlace, TieringFound, TieringProbe, each_tier, fast_and_slow,
};
