//! The contract of every backend: its calls, their order, and its failures.

use crate::study_place::StudyPlace;
use numalab_host::{Classed, ErrorClass};
use numalab_record::Environment;
use numalab_record::study::{Evidence, Notice, Observation, Treatment};
use numalab_workload::Workload;
use serde::{Deserialize, Serialize};

/// A kind of place in which treatments are applied and workloads run: this machine, a guest.
///
/// The types enforce the order of calls: a backend is [inspected](Self::inspect) any number of
/// times, then [prepared](Self::prepare) once; the result takes samples until it is
/// [restored](Prepared::restore).
pub trait Backend {
    /// Describes the place: `this machine`, `a Linux guest of 4 nodes`.
    fn describe(&self) -> String;

    /// Returns the number of metrics that the backend adds to those of each workload.
    fn own_metrics(&self) -> usize {
        0
    }

    /// Checks that the study can be run, and what it needs. Only reads: nothing is written, fetched
    /// or booted.
    ///
    /// # Errors
    /// [`BackendError::Lacking`] with the remedy, [`BackendError::BadInput`] for a setting or a
    /// workload that this backend does not know.
    fn inspect(&self, scope: &Scope<'_>) -> Result<Inspection, BackendError>;

    /// Fetches and boots what the samples need.
    ///
    /// # Errors
    /// [`PrepareError`]; the former state is restored.
    fn prepare(self: Box<Self>, scope: &Scope<'_>) -> Result<Preparation, PrepareError>;
}

/// The part of a study that a backend needs.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// Every treatment, the baseline first.
    pub treatments: &'a [Treatment],
    pub workloads: &'a [Workload],
}

/// The facts about a study that are known before anything is fetched or booted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// Notices for the reader, such as that a knob cannot have an effect on one node.
    pub notices: Vec<Notice>,
    /// The files to download first. Their size, and everything that depends on their content, is
    /// unknown until then.
    pub downloads: Vec<String>,
    /// The maximum memory that guests take at one time, in bytes; 0 without guests.
    pub memory_bytes: u64,
}

/// A prepared backend, with the facts found during preparation.
pub struct Preparation {
    /// Facts about the place; a study resumes only if all of them are the same, except those that
    /// every machine changes by itself.
    pub environment: Environment,
    /// Notices for the reader before the first sample.
    pub notices: Vec<Notice>,
    pub backend: Box<dyn Prepared>,
}

/// The reason why a backend cannot be prepared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrepareError {
    pub cause: BackendError,
    /// The failure to restore settings afterwards, if there was one.
    pub restore: Option<Box<BackendError>>,
}

impl From<BackendError> for PrepareError {
    fn from(cause: BackendError) -> Self {
        Self { cause, restore: None }
    }
}

impl PrepareError {
    /// Restores a backend that failed while it was being prepared.
    pub fn restoring(cause: BackendError, backend: Box<dyn Prepared>) -> Self {
        Self { cause, restore: backend.restore().err().map(Box::new) }
    }
}

/// A backend in which treatments are applied and samples taken. Its owner restores it; dropping it
/// restores it, too, but cannot report errors.
pub trait Prepared {
    /// Announces the treatments that will be applied next, in this order. A backend with treatments
    /// that cannot disturb each other may start them.
    fn expect(&mut self, _treatments: &[&Treatment]) {}

    /// Waits until one of the announced treatments can be applied and sampled at once, and returns
    /// its index, so that its samples are stored before those of the first one are ready. A backend
    /// that starts nothing ahead of time returns the first.
    fn first_ready(&mut self, _treatments: &[&Treatment]) -> usize {
        0
    }

    /// Applies a treatment. Returns every setting as read back, and evidence of its effect.
    ///
    /// # Errors
    /// [`BackendError::Failed`] if a setting does not take effect.
    fn apply(&mut self, treatment: &Treatment) -> Result<Vec<Evidence>, BackendError>;

    /// Runs one workload once under the treatment that was applied last.
    ///
    /// # Errors
    /// [`BackendError::Failed`] if the workload fails or a value cannot be read.
    fn sample(&mut self, request: &SampleRequest<'_>) -> Result<Observation, BackendError>;

    /// Restores the former state: guests end first, then the settings under them.
    ///
    /// # Errors
    /// [`BackendError`] names what could not be restored.
    fn restore(self: Box<Self>) -> Result<(), BackendError>;
}

#[derive(Clone, Copy, Debug)]
pub struct SampleRequest<'a> {
    pub treatment: &'a Treatment,
    pub workload: &'a Workload,
    /// The seed of all randomness in the sample, the same under every treatment of a block.
    pub seed: u64,
}

/// A reason why a backend cannot do what a study asks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackendError {
    /// This machine lacks a tool, a permission or a feature.
    #[error("{what}; {remedy}")]
    Lacking {
        /// The missing thing, and its purpose.
        what: String,
        /// The package or command that provides it.
        remedy: String,
    },
    /// The study requests something that the backend does not know.
    #[error("{place}: {found}: expected {expected}")]
    BadInput { place: StudyPlace, found: String, expected: String },
    /// The backend failed while running.
    #[error("{doing}: {reason}")]
    Failed { doing: String, reason: String },
    #[error("interrupted")]
    Interrupted,
}

impl BackendError {
    /// Returns the error for an action that failed.
    pub fn failed(doing: impl Into<String>, reason: impl ToString) -> Self {
        Self::Failed { doing: doing.into(), reason: reason.to_string() }
    }

    /// Returns the error for a workload that failed.
    pub fn of_workload(workload: &Workload, reason: impl ToString) -> Self {
        Self::failed(format!("workload {}", workload.name), reason)
    }

    /// Returns the error for something that this machine lacks.
    pub fn lacking(what: impl ToString, remedy: impl ToString) -> Self {
        Self::Lacking { what: what.to_string(), remedy: remedy.to_string() }
    }

    /// Returns the error for a part of the study that the backend does not know.
    pub fn bad_input(place: StudyPlace, found: impl ToString, expected: impl ToString) -> Self {
        Self::BadInput { place, found: found.to_string(), expected: expected.to_string() }
    }

    /// Returns the error for an action that failed in a library: a lack, if there is a remedy.
    pub fn of(doing: &str, error: &dyn Classed) -> Self {
        match error.remedy() {
            Some(remedy) => Self::lacking(error, remedy),
            None => Self::failed(doing, error),
        }
    }

    /// Returns the error for a workload's missing program, with the remedy.
    pub fn missing(workload: &Workload, program: &str) -> Self {
        let tool = workload.tools.iter().find(|tool| tool.program == program);
        Self::Lacking {
            what: format!("workload {}: `{program}` was not found", workload.name),
            remedy: tool.map_or_else(|| "expected a program".to_owned(), |tool| tool.remedy()),
        }
    }
}

impl Classed for BackendError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Lacking { .. } => ErrorClass::Lacking,
            Self::BadInput { .. } => ErrorClass::BadInput,
            Self::Failed { .. } | Self::Interrupted => ErrorClass::Failed,
        }
    }
}

#[cfg(test)]
mod tests;
