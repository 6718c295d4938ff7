//! Turns plans into records: pins threads, binds memory, takes windows until the interval is
//! narrow, and keeps a result directory that survives a crash.
//!
//! [`kind`] plans and measures single kinds. [`Session`] measures cell by cell and passes every
//! finished cell to a [`RunRecorder`], which keeps it in its [`Store`]. Ranks (`numalab-launch`)
//! use the same [`Buffer`], [`Windows`], [`RoundLog`], [`Samples`] and recorder, and differ only in
//! their synchronisation. The loops are in `numalab-membench`; nothing is rendered here.
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "fields of errors and records that their names explain")]

mod buffer;
mod chase;
mod context;
mod error;
mod health;
pub mod kind;
mod live_run;
mod measure_run;
mod measured;
mod memory_modules;
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
mod target;
mod team;
#[cfg(test)]
mod test_machines;
mod tiering;

pub use buffer::{Buffer, MemoryClaim, MemorySource, check_memory};
pub use chase::{BuiltChase, ChaseOrder, Windows};
pub use context::{BudgetClock, MeasureContext, Settings};
pub use error::MeasureError;
pub use health::health_cells;
pub use live_run::{LiveRun, Observe, RunRules, facts_now, recorder_for, usual_pages};
pub use measure_run::{MeasurePlan, beyond_caches};
pub use plan::{check_plan, estimate_plan, impossible_cells, usual_budget};
pub use probe::BalancingProbe;
pub use recorder::RunRecorder;
pub use sampling::{Samples, WindowLength, WindowValues, outcome_of, sample_here};
pub use scope::{MatrixShape, Scope, ScopeError, all_workers, matrix_workers};
pub use session::{Observer, Session, Tally};
pub use store::{Store, StoreError, directory_name, read, runs_in};
pub use stream::{RoundLog, Span, StreamRules, isa_name, stream_over};
pub use target::Target;
pub use tiering::{Heat, TierAccess, TierPlace, TieringProbe, Tiers};
