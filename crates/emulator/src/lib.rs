#![doc = include_str!("../README.md")]

mod api;
mod entry;
mod flows;
mod follow;
mod instrument;
mod marker;
mod once;
mod plugin;
mod pmu;
mod preload;
mod present;
mod program;
mod qemu;
pub mod report;
mod self_test;
mod target;
mod waiting;
