//! What needs a real SLURM: one lab, started once for all tests.
#![forbid(unsafe_code)]

#[path = "../common/classes.rs"]
mod classes;
#[path = "../common/schemas.rs"]
mod schemas;

mod advise;
mod fleet;
mod jobs;
mod lab;
