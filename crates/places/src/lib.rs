//! The backends of studies, where samples are taken and treatments applied: this machine, a Linux
//! guest, many guests under Xen or QEMU, kernels (numalab's or the user's), and programs on an
//! emulated machine.
//!
//! [`BACKENDS`] lists them all for the engine of `numalab-study`; [`Tolerant`] wraps another one.
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "fields of errors and records that their names explain")]

mod agent;
mod common_settings;
mod described_machine;
mod disturbance_watch;
mod downloads;
mod emulation;
mod exec;
mod facts;
mod guest_launcher;
mod guest_machine;
mod guests;
mod host;
mod host_side;
mod kernel;
mod knob_settings;
mod linux_guest;
mod live_guest;
pub mod machine;
mod nested_paging;
mod placement;
pub mod self_test;
mod tolerant;

use numalab_study::Backends;

use emulation::Emulation;
use guests::Guests;
use host::Host;
use kernel::Kernel;
use linux_guest::LinuxGuest;

pub use agent::serve;
pub use common_settings::WATCH_OUTPUT;
pub use emulation::{REPEATED, emulation_after, emulation_of, runs_at_once};
pub use exec::{FilesSeen, reading_from_nodes};
pub use host::OUTPUT;
pub use linux_guest::boots_new_kernel;
pub use tolerant::{Failures, Tolerant};

/// Every backend, with its settings and its constructor.
pub const BACKENDS: Backends = Backends::new(&[
    (&host::KIND, |spec, interrupt| Ok(Box::new(Host::open(spec, interrupt)?))),
    (&linux_guest::KIND, |spec, interrupt| Ok(Box::new(LinuxGuest::open(spec, interrupt)?))),
    (&guests::KIND, |spec, interrupt| Ok(Box::new(Guests::open(spec, interrupt)?))),
    (&kernel::KIND, |spec, interrupt| Ok(Box::new(Kernel::open(spec, interrupt)?))),
    (&emulation::KIND, |spec, interrupt| Ok(Box::new(Emulation::open(spec, interrupt)?))),
]);

#[cfg(test)]
mod tests;
