//! Where samples are taken, and how treatments are applied there.

mod agent;
mod contract;
mod disturbance_watch;
mod downloads;
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

use numalab_host::{Interrupt, allowed_now};
use numalab_topology::CpuSet;

use crate::definition::Study;

pub use agent::serve;
pub use contract::{
    Backend, BackendError, Inspection, Preparation, PrepareError, Prepared, SampleRequest, Scope,
};

/// The cpus on which this process and what it starts may run.
fn allowed_cpus() -> Result<CpuSet, BackendError> {
    let allowed = allowed_now().map_err(|error| BackendError::Failed {
        doing: "finding the cpus of this process".to_owned(),
        reason: error.to_string(),
    })?;
    Ok(allowed.cpus)
}

/// The backend that a study names. What it runs is ended when `interrupt` is requested.
///
/// # Errors
/// [`BackendError::BadInput`] for a kind or a setting of it that there is not.
pub fn open(study: &Study, interrupt: &Interrupt) -> Result<Box<dyn Backend>, BackendError> {
    match study.backend.kind.as_str() {
        "guests" => Ok(Box::new(guests::Guests::open(&study.backend, interrupt)?)),
        "host" => Ok(Box::new(host::Host::open(&study.backend, interrupt)?)),
        "linux-guest" => Ok(Box::new(linux_guest::LinuxGuest::open(&study.backend, interrupt)?)),
        "kernel" => Ok(Box::new(kernel::Kernel::open(&study.backend, interrupt)?)),
        kind => Err(BackendError::BadInput {
            place: "backend".to_owned(),
            found: kind.to_owned(),
            expected: "host, linux-guest, guests or kernel".to_owned(),
        }),
    }
}
