//! Linux guests in which memory costs time by their topology: `numalab latency` finds what the
//! emulator charges, and shows the effect of the system's policies.
//!
//! They need QEMU 10 (fetched from Debian's backports into the cache where the
//! distribution's is older) and the distribution's kernel package. With
//! `NUMALAB_REQUIRE_TOOLS=1` their lack is a failure; otherwise it is printed. Guests run
//! in virtual time, so that how busy the host is changes nothing but the tests' length.

mod cxl;
mod domains;
mod gallery;
mod guest;
mod hidden;
mod lab;
mod like;
mod machines;
mod placement;
mod replay;
mod reports;
mod self_test;
mod surface;
mod three_tiers;
mod tiers;
