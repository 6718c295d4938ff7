#![doc = include_str!("../README.md")]

mod api;
mod entry;
mod flows;
mod instrument;
mod marker;
mod plugin;
mod pmu;
mod qemu;
pub mod report;
mod self_test;
mod waiting;
