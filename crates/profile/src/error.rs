//! Errors of profiles.

use std::io;

use numalab_host::perf::PerfError;
use numalab_host::{Classed, ErrorClass, StartError, SysfsError};
use numalab_record::profile::{Hindrance, SourceName};

/// Reason why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The machine cannot be read.
    #[error(transparent)]
    Machine(#[from] SysfsError),
    #[error("process {process} does not exist")]
    NoProcess { process: u32 },
    #[error(
        "process {process}: the kernel lets only its user, and root with CAP_SYS_PTRACE, record it: run \
         numalab as one of them (in a container: docker run --cap-add SYS_PTRACE)"
    )]
    Foreign { process: u32 },
    /// The requested source cannot be used.
    #[error("{source_name} cannot be used: {why:?}")]
    Hindered { source_name: SourceName, why: Hindrance },
    /// The command exists, but a file that it needs to start does not.
    #[error(transparent)]
    NotStartable(#[from] StartError),
    #[error("cannot run `{program}`: {source}")]
    NotStarted { program: String, source: io::Error },
    #[error("the command cannot be followed: {0}")]
    NotFollowed(io::Error),
}

impl Classed for ProfileError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Machine(error) => error.class(),
            Self::NoProcess { .. } => ErrorClass::BadInput,
            Self::Foreign { .. } | Self::Hindered { .. } => ErrorClass::Lacking,
            Self::NotStartable(error) => error.class(),
            Self::NotStarted { source, .. } => ErrorClass::of_start(source),
            Self::NotFollowed(_) => ErrorClass::Failed,
        }
    }
}

/// Reason why events cannot be recorded.
pub(crate) enum Refused {
    /// No source can observe the process.
    Process(ProfileError),
    /// Another source may work.
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
