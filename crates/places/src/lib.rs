//! The backends of studies, where samples are taken and treatments applied: this machine, a Linux
//! guest, many guests under Xen or QEMU, and kernels, numalab's or the user's.
//!
//! [`BACKENDS`] lists those that a study can name, for the engine of `numalab-study`. [`Emulation`]
//! is made from a known program, and [`Tolerant`] wraps another backend.
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
pub use common_settings::WATCH_OUTPUT;
pub use emulation::{AS_IS, Emulation, PLACEMENT, REPEATED};
pub use host::OUTPUT;
pub use linux_guest::{DescribedGuest, boots_new_kernel};
pub use tolerant::{Failures, Tolerant};

/// Every backend, with its settings and its constructor.
pub const BACKENDS: Backends = Backends::new(&[
    (&host::KIND, |spec, interrupt| Ok(Box::new(Host::open(spec, interrupt)?))),
    (&linux_guest::KIND, |spec, interrupt| Ok(Box::new(LinuxGuest::open(spec, interrupt)?))),
    (&guests::KIND, |spec, interrupt| Ok(Box::new(Guests::open(spec, interrupt)?))),
    (&kernel::KIND, |spec, interrupt| Ok(Box::new(Kernel::open(spec, interrupt)?))),
]);

#[cfg(test)]
mod tests;
