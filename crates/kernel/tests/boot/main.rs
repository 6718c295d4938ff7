//! Real boots under QEMU.
//!
//! They need `qemu-system-x86_64` and the Rust target `x86_64-unknown-none`. With
//! `NUMALAB_REQUIRE_TOOLS=1` their absence is a failure; otherwise it is printed.

mod failures;
mod iso;
mod machines;
mod need;
mod qemu;
mod small;
mod tables;
