#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod collect;
mod error;
mod model;
mod store;
mod submit;

pub use collect::{Collected, Runs, digest};
pub use error::FleetError;
pub use model::{Digest, DigestFigure};
pub use store::Store;
pub use submit::{Submission, SubmitError, TaskPlan, plan_submission, slurm};
