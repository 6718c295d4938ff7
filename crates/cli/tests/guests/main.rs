//! Tests that boot guests or run programs under the emulator. A module boots a guest once for many
//! of its tests, so `scripts/test` runs each module in a process, several at once.
#![forbid(unsafe_code)]

#[path = "../common/jq.rs"]
mod jq;
#[path = "../common/killed.rs"]
mod killed;
#[path = "../common/schemas.rs"]
mod schemas;

mod advise;
mod arm64;
mod backends;
mod bisect;
mod code;
mod emulate;
mod emulated;
mod guest;
mod kernel;
mod kernel_lab;
mod kernel_parameters;
mod killed_advice;
mod linux_tables;
mod profile_guest;
mod programs;
mod rank_guest;
mod raw;
mod study_guests;
mod xen;
