//! Why there is no advice.

use std::io;

use numalab_guest::GuestError;
use numalab_guest::program::{FollowedError, ProgramError};
use numalab_host::{CommandError, ErrorClass};
use numalab_results::advice::Untried;
use numalab_study::{BackendError, SessionError};
use numalab_workload::{OutputError, SpecError};

use crate::ranks::RanksError;

/// Why there is no advice.
#[derive(Debug, thiserror::Error)]
pub enum AdviseError {
    /// There is no command.
    #[error("nothing to run: expected a command behind `--`")]
    NothingToRun,
    /// There is no such program.
    #[error("{0}: no such program, here or in PATH")]
    NotFound(String),
    /// It cannot be started, or did not end.
    #[error(transparent)]
    Command(CommandError),
    /// It failed.
    #[error("{program} ended with {status}{said}")]
    Ended {
        /// The program.
        program: String,
        /// How it ended.
        status: std::process::ExitStatus,
        /// Its last words, behind a colon.
        said: String,
    },
    /// It was not at its end when it ended.
    #[error(
        "{program} left {left} running, which was ended: expected a program that does its work \
         before it ends"
    )]
    Left {
        /// The program.
        program: String,
        /// What it left.
        left: String,
    },
    /// Most of its processes were not seen: these.
    #[error("{0}")]
    MostNotFollowed(String),
    /// The emulator's report is of no program.
    #[error("no program ran")]
    NoProgram,
    /// What the emulator said cannot be read.
    #[error(transparent)]
    Report(#[from] FollowedError),
    /// The number to judge by is not in its output.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// It cannot be run under emulation.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The emulator is not there.
    #[error(transparent)]
    Emulator(#[from] GuestError),
    /// It cannot be the workload of a study.
    #[error(transparent)]
    Workload(#[from] SpecError),
    /// Ranks that it starts cannot be placed.
    #[error(transparent)]
    Ranks(#[from] RanksError),
    /// A candidate was chosen that cannot be tried.
    #[error("a candidate cannot be tried: {0:?}")]
    Untried(Untried),
    /// The study cannot be written.
    #[error("the study of the trials: {0}")]
    Study(#[from] toml::ser::Error),
    /// There is no room for what trials leave.
    #[error("a directory for the trials: {0}")]
    Scratch(io::Error),
    /// The place of the trials cannot be opened.
    #[error(transparent)]
    Place(#[from] BackendError),
    /// The trials failed.
    #[error(transparent)]
    Trials(#[from] SessionError),
}

impl AdviseError {
    /// The class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::NothingToRun | Self::Workload(_) | Self::Ranks(_) | Self::Study(_) => {
                ErrorClass::BadInput
            }
            Self::Program(ProgramError::NoQemu { .. })
            | Self::Emulator(_)
            | Self::MostNotFollowed(_) => ErrorClass::Lacking,
            Self::Place(error) => error.class(),
            Self::Trials(error) => error.class(),
            _ => ErrorClass::Failed,
        }
    }
}
