//! Tests that need a real SLURM, with one lab for all of them.
#![forbid(unsafe_code)]

#[path = "../common/classes.rs"]
mod classes;
#[path = "../common/schemas.rs"]
mod schemas;

mod advise;
mod fleet;
mod jobs;
mod lab;
