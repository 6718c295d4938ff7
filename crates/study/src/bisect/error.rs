//! Why a bisection cannot go on.

use std::io;
use std::path::PathBuf;

use numalab_host::{CommandError, ErrorClass};

use crate::backend::BackendError;

/// Why a bisection cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum BisectError {
    /// Git refuses.
    #[error("{}: {source}", tree.display())]
    Git {
        /// Where it was asked.
        tree: PathBuf,
        /// What it says.
        source: CommandError,
    },
    /// The bad commit does not come after the good one.
    #[error("--bad {bad}: does not come after --good {good}: expected one of its descendants")]
    NotBehind {
        /// The good commit.
        good: String,
        /// The bad one.
        bad: String,
    },
    /// A commit on which everything rests does not build.
    #[error("commit {commit} does not build: {reason}")]
    EndNotBuilt {
        /// Which.
        commit: String,
        /// Why.
        reason: String,
    },
    /// The build ended in a way that git takes for the end of a bisection.
    #[error("the build of commit {commit} was given up: {reason}")]
    BuildGivenUp {
        /// Which.
        commit: String,
        /// How it ended.
        reason: String,
    },
    /// A build says that it succeeded, and names no file.
    #[error("the build of commit {commit} printed {printed:?} last: expected the kernel's file")]
    NoKernel {
        /// Which.
        commit: String,
        /// What it printed.
        printed: String,
    },
    /// A commit on which everything rests gives no sample.
    #[error("commit {commit}: {source}")]
    EndNotRun {
        /// Which.
        commit: String,
        /// Why.
        source: BackendError,
    },
    /// Samples cannot be taken at all.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// What was there before could not be put back: nothing more may be changed.
    #[error("{0}")]
    NotRestored(BackendError),
    /// A sample has no value that could be compared.
    #[error("{metric} is {value}: expected a value above 0, since commits are compared by ratios")]
    NoRatio {
        /// What was measured.
        metric: String,
        /// The value.
        value: f64,
    },
    /// The study does not give that metric.
    #[error("metric {wanted:?}: expected {known}")]
    NoMetric {
        /// What was asked for.
        wanted: String,
        /// What the samples have, in words.
        known: String,
    },
    /// The rules make no test.
    #[error("{0}")]
    Rules(numalab_stats::Error),
    /// A file cannot be written.
    #[error("{path}: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl BisectError {
    /// The class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Git { source, .. } => match source {
                CommandError::Failed { .. } => ErrorClass::BadInput,
                other => other.class(),
            },
            Self::NotBehind { .. } | Self::NoMetric { .. } | Self::Rules(_) => ErrorClass::BadInput,
            Self::Backend(error) | Self::EndNotRun { source: error, .. } => error.class(),
            _ => ErrorClass::Failed,
        }
    }
}

#[cfg(test)]
mod tests;
