//! Where samples are taken, and how treatments are applied there.

mod agent;
mod common_settings;
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
mod placement;
mod set;
mod setting_spec;

use numalab_host::{Interrupt, allowed_now};
use numalab_topology::CpuSet;

use crate::definition::Study;

pub use agent::serve;
pub use contract::{
    Backend, BackendError, Inspection, Preparation, PrepareError, Prepared, SampleRequest, Scope,
};
pub use setting_spec::{BackendKind, SettingKind, SettingSpec};

/// The cpus on which this process and what it starts may run.
fn allowed_cpus() -> Result<CpuSet, BackendError> {
    let allowed = allowed_now().map_err(|error| BackendError::Failed {
        doing: "finding the cpus of this process".to_owned(),
        reason: error.to_string(),
    })?;
    Ok(allowed.cpus)
}

/// Every backend, with its settings.
const KINDS: [&BackendKind; 4] = [&host::KIND, &linux_guest::KIND, &guests::KIND, &kernel::KIND];

/// Every backend, with its settings.
#[must_use]
pub fn backend_kinds() -> &'static [&'static BackendKind] {
    &KINDS
}

/// The backend of this name.
///
/// # Errors
/// [`BackendError::BadInput`] with those that there are.
pub fn backend_kind(name: &str) -> Result<&'static BackendKind, BackendError> {
    KINDS.into_iter().find(|kind| kind.name == name).ok_or_else(|| BackendError::BadInput {
        place: "backend".to_owned(),
        found: name.to_owned(),
        expected: KINDS.map(|kind| kind.name).join(", "),
    })
}

/// The backend that a study names. What it runs is ended when `interrupt` is requested.
///
/// # Errors
/// [`BackendError::BadInput`] for a kind or a setting of it that there is not.
pub fn open(study: &Study, interrupt: &Interrupt) -> Result<Box<dyn Backend>, BackendError> {
    let kind = backend_kind(&study.backend.kind)?;
    (kind.open)(&study.backend, interrupt)
}
