#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod analyse;
mod collect;
mod error;
mod page;
mod store;
mod submit;

pub use analyse::{
    Analysis, Claim, DetectionPoint, Different, Family, Scope, SettingEffect, analyse,
};
pub use collect::{Collected, Digest, DigestFigure, FigureKey, Runs, digest};
pub use error::FleetError;
pub use page::page;
pub use store::{HostRun, Store};
pub use submit::{Submission, SubmitError, TaskPlan, plan_submission, slurm};
