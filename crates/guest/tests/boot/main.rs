//! Real guests: booted, asked, made to fail, and gone afterwards.
//!
//! They need `qemu-system-x86_64` and the distribution's kernel package, which
//! is downloaded into the cache once. With `NUMALAB_REQUIRE_TOOLS=1` their lack
//! is a failure; otherwise it is printed. With `NUMALAB_LONG=1` more packages
//! are downloaded: every workload's, and Debian's backports.
#![forbid(unsafe_code)]

mod failures;
mod kinds;
mod lab;
mod machine;
mod packages;
mod xen;
