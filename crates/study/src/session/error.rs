//! Why a session ends early.

use numalab_host::ErrorClass;

use crate::backend::{BackendError, PrepareError};
use crate::journal::JournalError;

/// Why a session ended without doing what it should.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The backend cannot do it.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// It cannot be kept.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The study goes on in another environment than it began in.
    #[error("the environment is not that in which the study began: {differences}; run it anew")]
    OtherEnvironment {
        /// What differs.
        differences: String,
    },
    /// What was there before could not be put back, whatever else happened.
    #[error("could not be put back: {restore}{}", after(.cause.as_deref()))]
    NotRestored {
        /// What could not be put back.
        restore: BackendError,
        /// Why the session ended before.
        cause: Option<Box<SessionError>>,
    },
}

fn after(cause: Option<&SessionError>) -> String {
    cause.map_or_else(String::new, |cause| format!(" (after: {cause})"))
}

impl SessionError {
    /// The class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
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
