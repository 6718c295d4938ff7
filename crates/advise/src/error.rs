//! Errors of advice.

use std::io;

use numalab_guest::GuestError;
use numalab_guest::program::{FollowedError, ProgramError};
use numalab_host::{Classed, CommandError, ErrorClass};
use numalab_places::machine::MachineError;
use numalab_results::advice::Untried;
use numalab_study::{BackendError, SessionError};
use numalab_workload::{OutputError, SpecError};

use crate::ranks::RanksError;

/// A reason why there is no advice.
#[derive(Debug, thiserror::Error)]
pub enum AdviseError {
    #[error("nothing to run: expected a command after `--`")]
    NothingToRun,
    #[error("{0}: no such program, here or in PATH")]
    NotFound(String),
    /// The program could not be started, or did not end.
    #[error(transparent)]
    Command(CommandError),
    #[error("{program} ended with {status}{message}")]
    Ended {
        program: String,
        status: std::process::ExitStatus,
        /// The end of its error output, after a colon.
        message: String,
    },
    /// The program exited while processes that it had started were still running.
    #[error(
        "{program} left {left} running, now terminated: expected a program that completes its work \
         before it exits"
    )]
    Left { program: String, left: String },
    /// The emulator's report does not describe a program.
    #[error("no program ran")]
    NoProgram,
    /// The emulator's report cannot be read, or lacks most processes.
    #[error(transparent)]
    Report(#[from] FollowedError),
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The machine cannot be read or modelled.
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error(
        "--try-on host: candidates run on this machine, so no option may describe another one; \
         --source results:DIR or --emulate-like FILE gives its measured memory costs"
    )]
    NotHere,
    #[error(
        "--try-on host: {name} describes a machine with other nodes and cpus: expected one measured \
         here"
    )]
    Unlike { name: String },
    /// The program cannot be run under emulation.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The emulator cannot be found or used.
    #[error(transparent)]
    Emulator(#[from] GuestError),
    /// The program cannot be the workload of a study.
    #[error(transparent)]
    Workload(#[from] SpecError),
    /// The ranks that it starts cannot be placed.
    #[error(transparent)]
    Ranks(#[from] RanksError),
    #[error("a candidate cannot be tried: {0:?}")]
    Untried(Untried),
    #[error("cannot write the study of the trials: {0}")]
    Study(#[from] toml::ser::Error),
    #[error("cannot write the emulated machine into the study: {0}")]
    Model(#[from] serde_json::Error),
    #[error("cannot create a directory for the trials: {0}")]
    Scratch(io::Error),
    /// The backend of the trials cannot be opened.
    #[error(transparent)]
    Place(#[from] BackendError),
    #[error(transparent)]
    Trials(#[from] SessionError),
}

impl Classed for AdviseError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::NothingToRun
            | Self::Workload(_)
            | Self::Ranks(_)
            | Self::Study(_)
            | Self::NotHere
            | Self::Unlike { .. } => ErrorClass::BadInput,
            Self::Machine(error) => error.class(),
            Self::Report(error) => error.class(),
            Self::NotFound(_) => ErrorClass::NotFound,
            Self::Command(CommandError::NotRun { .. } | CommandError::NotStarted(_)) => {
                ErrorClass::NotRunnable
            }
            Self::Program(error) => error.class(),
            Self::Emulator(error) => error.class(),
            Self::Place(error) => error.class(),
            Self::Trials(error) => error.class(),
            _ => ErrorClass::Failed,
        }
    }

    fn remedy(&self) -> Option<String> {
        let Self::Emulator(error) = self else { return None };
        error.remedy()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_gave_wrong_is_told_from_what_failed() {
        let class = |error: AdviseError| error.class();
        assert_eq!(class(AdviseError::NothingToRun), ErrorClass::BadInput);
        assert_eq!(class(AdviseError::NotHere), ErrorClass::BadInput);
        assert_eq!(class(RanksError::NothingLeft.into()), ErrorClass::BadInput);
        assert_eq!(class(AdviseError::NotFound("x".to_owned())), ErrorClass::NotFound);
        let source = io::Error::from_raw_os_error(13);
        let not_run = CommandError::NotRun { program: "x".to_owned(), source };
        assert_eq!(class(AdviseError::Command(not_run)), ErrorClass::NotRunnable);
        assert_eq!(class(AdviseError::NoProgram), ErrorClass::Failed);
        assert_eq!(class(AdviseError::Scratch(io::Error::other("x"))), ErrorClass::Failed);
        assert_eq!(AdviseError::NoProgram.remedy(), None);
    }
}
