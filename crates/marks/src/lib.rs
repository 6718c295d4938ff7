//! The interface between a program and numalab's emulator: markers, counters, and virtual time.
//!
//! A program executes [`mark`]s, which the emulator acts on and hardware ignores; the emulator
//! publishes its counts in the page of [`pmu`], from which [`virtual_time`] takes the time of one
//! vCPU. Nothing is allocated, opened or started. x86-64 and aarch64; elsewhere markers do nothing.
#![no_std]
#[cfg(test)]
extern crate std;

#[cfg_attr(target_arch = "x86_64", path = "cpu_number/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "cpu_number/aarch64.rs")]
mod cpu_number;
pub mod libnuma;
pub mod mark;
pub mod pmu;
pub mod virtual_time;
