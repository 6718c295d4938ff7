#![doc = include_str!("../README.md")]

pub mod address;
mod api;
pub mod arguments;
pub mod bandwidth;
pub mod cache;
pub mod cost;
pub mod counters;
pub mod engine;
mod entry;
pub mod gate;
mod instrument;
pub mod machine;
pub mod marker;
pub mod phase_names;
mod plugin;
mod pmu;
mod qemu;
pub mod report;
mod sample;
mod self_test;
mod short;
mod sleep;
mod turn;
mod vcpu;
mod waiting;
