//! Errors of bisections.

use std::io;
use std::path::PathBuf;

use numalab_host::{Classed, CommandError, ErrorClass};

use crate::backend::BackendError;

/// Reason why a bisection cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum BisectError {
    #[error("{}: {source}", tree.display())]
    Git { tree: PathBuf, source: CommandError },
    /// The bad commit does not descend from the good one.
    #[error("--bad {bad}: expected a descendant of --good {good}")]
    NotBehind { good: String, bad: String },
    #[error("commit {commit} does not build: {reason}")]
    EndNotBuilt { commit: String, reason: String },
    /// A build ended with a status that aborts the bisection, as in git-bisect(1).
    #[error("the build of commit {commit} was aborted: {reason}")]
    BuildGivenUp { commit: String, reason: String },
    #[error(
        "the last line of the build of commit {commit} is {printed:?}: expected the kernel's path"
    )]
    NoKernel { commit: String, printed: String },
    /// No sample could be taken of one of the two end commits.
    #[error("commit {commit}: {source}")]
    EndNotRun { commit: String, source: BackendError },
    /// Samples cannot be taken at all.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The former state could not be restored, so nothing more may be changed.
    #[error("{0}")]
    NotRestored(BackendError),
    #[error("{metric} is {value}: expected a positive value, since commits are compared by ratios")]
    NoRatio { metric: String, value: f64 },
    /// The study does not measure the metric.
    #[error("metric {wanted:?}: expected {known}")]
    NoMetric { wanted: String, known: String },
    /// The study has no such treatment, or several and none is named.
    #[error("--treatment{wanted}: expected one of {known}")]
    NoTreatment { wanted: String, known: String },
    /// Neither the backend nor the workload's command uses the file that a build makes.
    #[error(
        "workload {workload} does not use what is built from a commit: expected {{kernel}} in its \
         command, or a backend that boots a kernel instead of {backend}"
    )]
    BuildUnused { backend: String, workload: String },
    /// The script or configuration for building commits does not exist.
    #[error("{}: {source}", path.display())]
    NoFile { path: PathBuf, source: io::Error },
    #[error("--build {}: expected an executable; run chmod +x on a script", script.display())]
    NoProgram { script: PathBuf },
    /// The rules do not define a test.
    #[error("{0}")]
    Rules(numalab_stats::Error),
    /// A file cannot be written.
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

impl Classed for BisectError {
    fn class(&self) -> ErrorClass {
        match self {
            // Git mostly fails because of its input: a revision, or a tree without one.
            Self::Git { source, .. } => match source {
                CommandError::Failed { .. } => ErrorClass::BadInput,
                other => other.class(),
            },
            Self::NotBehind { .. }
            | Self::NoMetric { .. }
            | Self::NoTreatment { .. }
            | Self::NoFile { .. }
            | Self::NoProgram { .. }
            | Self::BuildUnused { .. }
            | Self::Rules(_) => ErrorClass::BadInput,
            Self::Backend(error) | Self::EndNotRun { source: error, .. } => error.class(),
            _ => ErrorClass::Failed,
        }
    }
}

#[cfg(test)]
mod tests;
