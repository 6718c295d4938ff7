//! Errors of sessions.

use numalab_host::{Classed, ErrorClass};

use crate::backend::{BackendError, PrepareError};
use crate::journal::JournalError;

/// Reason why a session ended early.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The results could not be stored.
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(
        "the environment differs from that in which the study began: {differences}; start a \
             new run"
    )]
    OtherEnvironment { differences: String },
    /// The former state could not be restored; this takes precedence over an earlier error.
    #[error("could not be restored: {restore}{}", after(.cause.as_deref()))]
    NotRestored {
        restore: BackendError,
        /// The earlier error, if any.
        cause: Option<Box<SessionError>>,
    },
}

fn after(cause: Option<&SessionError>) -> String {
    cause.map_or_else(String::new, |cause| format!(" (after: {cause})"))
}

impl Classed for SessionError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Backend(error) => error.class(),
            Self::Journal(error) => error.class(),
            Self::OtherEnvironment { .. } | Self::NotRestored { .. } => ErrorClass::Failed,
        }
    }
}

impl From<PrepareError> for SessionError {
    fn from(error: PrepareError) -> Self {
        match error.restore {
            None => Self::Backend(error.cause),
            Some(restore) => Self::NotRestored {
                restore: *restore,
                cause: Some(Box::new(Self::Backend(error.cause))),
            },
        }
    }
}

#[cfg(test)]
mod tests;
