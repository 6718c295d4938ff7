//! Every command from outside, as far as only the program is needed: no guest, no SLURM.
#![forbid(unsafe_code)]

#[path = "../common/classes.rs"]
mod classes;
#[path = "../common/command.rs"]
mod command;
#[path = "../common/jq.rs"]
mod jq;
#[path = "../common/schemas.rs"]
mod schemas;

mod closed_pipes;
mod compare;
mod conventions;
mod descriptions;
mod documents;
mod dry_runs;
mod everyday;
mod examples;
mod explore;
mod fleet;
mod formats;
mod health;
mod knobs;
mod large_inputs;
mod machine_files;
mod machines;
mod openmetrics;
mod profile;
mod python;
mod ranks;
mod scale;
mod scaling;
mod study;
mod tiers;
mod verdicts;
