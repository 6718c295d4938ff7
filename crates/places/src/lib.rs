//! Where the samples of studies are taken, and how treatments are applied there: this machine,
//! a Linux guest, many guests under Xen or QEMU, our own kernel and others'.
//!
//! [`BACKENDS`] is the one list of those that a study names, which `numalab-study`'s engine is
//! given. [`Emulation`] is made of a program that is known, and [`Tolerant`] of another place.
#![forbid(unsafe_code)]

mod agent;
mod common_settings;
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
mod nested_paging;
mod placement;
mod tolerant;

use numalab_study::Backends;

use guests::Guests;
use host::Host;
use kernel::Kernel;
use linux_guest::LinuxGuest;

pub use agent::serve;
pub use emulation::{AS_IS, Emulation, PLACEMENT, REPEATED};
pub use host::OUTPUT;
pub use tolerant::{Failures, Tolerant};

/// Every backend, with its settings and how it is opened.
pub const BACKENDS: Backends = Backends::new(&[
    (&host::KIND, |spec, interrupt| Ok(Box::new(Host::open(spec, interrupt)?))),
    (&linux_guest::KIND, |spec, interrupt| Ok(Box::new(LinuxGuest::open(spec, interrupt)?))),
    (&guests::KIND, |spec, interrupt| Ok(Box::new(Guests::open(spec, interrupt)?))),
    (&kernel::KIND, |spec, interrupt| Ok(Box::new(Kernel::open(spec, interrupt)?))),
]);

#[cfg(test)]
mod tests;
