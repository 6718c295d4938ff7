//! Boots real guests, queries them, makes them fail, and checks that they leave nothing.
//!
//! These tests need `qemu-system-x86_64` and the distribution's kernel package, which is downloaded
//! into the cache once. If they are missing, the tests fail with `NUMALAB_REQUIRE_TOOLS=1` and
//! print a note otherwise. With `NUMALAB_LONG=1` more packages are downloaded: every workload's,
//! and Debian's backports.
#![forbid(unsafe_code)]

mod failures;
mod kinds;
mod lab;
mod machine;
mod packages;
mod xen;
