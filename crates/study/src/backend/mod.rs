//! Where samples are taken, and how treatments are applied there.

mod agent;
mod disturbance_watch;
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

use numalab_host::{ErrorClass, Interrupt, allowed_now};
use numalab_record::Environment;
use numalab_record::study::{Evidence, Taken, Treatment};
use numalab_topology::CpuSet;
use numalab_workload::Workload;
use serde::{Deserialize, Serialize};

use crate::definition::Study;

/// A place in which treatments are applied and workloads run: this machine, a guest.
///
/// A session calls [`check`](Self::check) and [`environment`](Self::environment) once,
/// then for each visit of a block [`expect`](Self::expect), [`apply`](Self::apply) and a
/// [`sample`](Self::sample) for each workload, and [`restore`](Self::restore) at its end,
/// however it ends. A backend may boot a guest in `apply`, or in every `sample`.
pub trait Backend {
    /// What the place is, in words: `this machine`, `Linux guest, 4 nodes, TCG`.
    fn describe(&self) -> String;

    /// How many metrics it adds to those of each workload.
    fn own_metrics(&self) -> usize {
        0
    }

    /// Looks whether the study can be run, and changes nothing. Gives what the reader
    /// should know before it starts, such as that a knob cannot act on one node.
    ///
    /// # Errors
    /// [`BackendError::Lacking`] with what mends it, [`BackendError::BadInput`] for a setting
    /// or a workload that this backend does not know.
    fn check(
        &mut self,
        treatments: &[Treatment],
        workloads: &[Workload],
    ) -> Result<Vec<String>, BackendError>;

    /// Facts about the place; a study resumes only if all of them but those that every
    /// machine changes by itself are the same.
    ///
    /// # Errors
    /// [`BackendError`] if they cannot be found.
    fn environment(&mut self) -> Result<Environment, BackendError>;

    /// Hears which treatments will be applied next, in this order. A backend whose treatments
    /// cannot disturb each other may begin with them.
    fn expect(&mut self, _treatments: &[&Treatment]) {}

    /// Makes a treatment hold. Gives every setting as read back, and what shows that it
    /// acts.
    ///
    /// # Errors
    /// [`BackendError::Failed`] if a setting does not hold.
    fn apply(&mut self, treatment: &Treatment) -> Result<Vec<Evidence>, BackendError>;

    /// BootContext one workload once under the treatment that was applied last.
    ///
    /// # Errors
    /// [`BackendError::Failed`] if the workload fails or a value cannot be read.
    fn sample(&mut self, order: &SampleRequest<'_>) -> Result<Taken, BackendError>;

    /// Puts back what was there before. Called once more after an error must do no harm.
    ///
    /// # Errors
    /// [`BackendError`] names what could not be put back.
    fn restore(&mut self) -> Result<(), BackendError>;
}

/// What is to be run.
#[derive(Clone, Copy, Debug)]
pub struct SampleRequest<'a> {
    /// Under which treatment.
    pub treatment: &'a Treatment,
    /// What.
    pub workload: &'a Workload,
    /// A seed for everything random in it, the same under every treatment of a block.
    pub seed: u64,
}

pub use agent::serve;

/// Why a backend cannot do what it is asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackendError {
    /// This machine lacks a tool, a permission or a feature.
    #[error("{what}; {remedy}")]
    Lacking {
        /// What is missing, and what for.
        what: String,
        /// The package or command that mends it.
        remedy: String,
    },
    /// The study asks for what the backend does not know.
    #[error("{place}: {found}: expected {expected}")]
    BadInput {
        /// Where in the study: `factor pages, level 2m`.
        place: String,
        /// What stands there.
        found: String,
        /// What may stand there.
        expected: String,
    },
    /// It failed while running.
    #[error("{doing}: {reason}")]
    Failed {
        /// What was tried.
        doing: String,
        /// What came of it.
        reason: String,
    },
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
}

impl BackendError {
    /// The class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Lacking { .. } => ErrorClass::Lacking,
            Self::BadInput { .. } => ErrorClass::BadInput,
            Self::Failed { .. } | Self::Interrupted => ErrorClass::Failed,
        }
    }
}

/// The cpus on which this process and what it starts may run.
fn allowed_cpus() -> Result<CpuSet, BackendError> {
    let allowed = allowed_now().map_err(|error| BackendError::Failed {
        doing: "finding the cpus of this process".to_owned(),
        reason: error.to_string(),
    })?;
    Ok(allowed.cpus)
}

/// Opens the backend that a study names, and changes nothing. What it runs is ended when
/// `interrupt` is requested.
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
