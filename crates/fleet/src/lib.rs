#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod collect;
mod error;
mod store;
mod submit;

pub use collect::{Collected, Runs};
pub use error::FleetError;
pub use store::Store;
pub use submit::{Submission, SubmitError, TaskPlan, plan_submission, slurm};
