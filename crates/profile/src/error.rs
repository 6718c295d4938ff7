//! Why there is no profile.

use std::io;

use numalab_host::perf::PerfError;
use numalab_host::{ErrorClass, SysfsError};
use numalab_record::profile::{Hindrance, SourceName};

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The machine cannot be read.
    #[error(transparent)]
    Machine(#[from] SysfsError),
    /// There is no such process.
    #[error("--pid {process}: there is no such process")]
    NoProcess {
        /// The process.
        process: u32,
    },
    /// It is another user's.
    #[error("process {process} is another user's: run numalab as root or as that user")]
    Foreign {
        /// The process.
        process: u32,
    },
    /// The source that was asked for cannot be used.
    #[error("--source {source_name}: {why:?}")]
    Hindered {
        /// The source.
        source_name: SourceName,
        /// Why not.
        why: Hindrance,
    },
    /// The command cannot be started.
    #[error("cannot run `{program}`: {source}")]
    NotStarted {
        /// The program.
        program: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The command cannot be followed.
    #[error("the command cannot be followed: {0}")]
    NotFollowed(io::Error),
}

impl ProfileError {
    /// The class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Machine(error) => error.class(),
            Self::NoProcess { .. } => ErrorClass::BadInput,
            Self::Foreign { .. } | Self::Hindered { .. } => ErrorClass::Lacking,
            Self::NotStarted { .. } | Self::NotFollowed(_) => ErrorClass::Failed,
        }
    }
}

/// What a recording of events is refused for.
pub(crate) enum Refused {
    /// Nothing can be seen of that process.
    Process(ProfileError),
    /// Other sources may do.
    Hindrance(Hindrance),
}

impl From<PerfError> for Refused {
    fn from(error: PerfError) -> Self {
        match error {
            PerfError::NoProcess { process } => Self::Process(ProfileError::NoProcess { process }),
            PerfError::Foreign { process } => Self::Process(ProfileError::Foreign { process }),
            PerfError::Hindered(why) => Self::Hindrance(why),
        }
    }
}

#[cfg(test)]
mod tests;
