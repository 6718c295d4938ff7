#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "fields of errors and records that their names explain")]
#![expect(clippy::missing_errors_doc, reason = "error types that list what can fail")]

mod collect;
mod error;
mod store;
mod submit;

pub use collect::{Collected, Foreseen, Runs};
pub use error::FleetError;
pub use store::{CopyOfRun, Store};
pub use submit::{Submission, SubmitError, TaskPlan, plan_submission, slurm};
