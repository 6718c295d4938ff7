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
mod nested_paging;
mod placement;
mod set;
mod setting_spec;

use numalab_host::Interrupt;

use crate::definition::{BackendSpec, Study};
use crate::study_place::StudyPlace;
use guests::Guests;
use host::Host;
use kernel::Kernel;
use linux_guest::LinuxGuest;

pub use agent::serve;
pub use contract::{
    Backend, BackendError, Inspection, Preparation, PrepareError, Prepared, SampleRequest, Scope,
};
pub use host::OUTPUT;
pub use setting_spec::{BackendKind, SettingKind, SettingSpec};

/// Opens a backend with a study's settings; what it runs is ended when it is interrupted.
type Open = fn(&BackendSpec, &Interrupt) -> Result<Box<dyn Backend>, BackendError>;

/// Every backend, with its settings and how it is opened.
const KINDS: [(&BackendKind, Open); 4] = [
    (&host::KIND, |spec, interrupt| Ok(Box::new(Host::open(spec, interrupt)?))),
    (&linux_guest::KIND, |spec, interrupt| Ok(Box::new(LinuxGuest::open(spec, interrupt)?))),
    (&guests::KIND, |spec, interrupt| Ok(Box::new(Guests::open(spec, interrupt)?))),
    (&kernel::KIND, |spec, interrupt| Ok(Box::new(Kernel::open(spec, interrupt)?))),
];

/// Every backend, with its settings.
pub fn backend_kinds() -> impl Iterator<Item = &'static BackendKind> {
    KINDS.into_iter().map(|(kind, _)| kind)
}

fn entry(name: &str) -> Result<(&'static BackendKind, Open), BackendError> {
    KINDS.into_iter().find(|(kind, _)| kind.name == name).ok_or_else(|| BackendError::BadInput {
        place: StudyPlace::keys(["backend"]),
        found: name.to_owned(),
        expected: KINDS.map(|(kind, _)| kind.name).join(", "),
    })
}

/// The backend of this name.
///
/// # Errors
/// [`BackendError::BadInput`] with those that there are.
pub fn backend_kind(name: &str) -> Result<&'static BackendKind, BackendError> {
    entry(name).map(|(kind, _)| kind)
}

/// The backend that a study names. What it runs is ended when `interrupt` is requested.
///
/// # Errors
/// [`BackendError::BadInput`] for a kind or a setting of it that there is not.
pub fn open(study: &Study, interrupt: &Interrupt) -> Result<Box<dyn Backend>, BackendError> {
    let (_, open) = entry(&study.backend.kind)?;
    open(&study.backend, interrupt)
}

#[cfg(test)]
mod tests;
