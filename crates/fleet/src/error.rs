//! Errors of fleets.

use std::io;
use std::path::{Path, PathBuf};

use numalab_host::{Classed, ErrorClass};
use numalab_record::{Kind, file};

/// Reason why a fleet could not be collected or analysed.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The store could not be read or written.
    #[error("{}: {source}", path.display())]
    Store { path: PathBuf, source: io::Error },
    #[error("{}: a fleet store of an earlier version (SQLite), which is no longer supported; collect the runs again into a new file: numalab fleet collect DIR", path.display())]
    Sqlite { path: PathBuf },
    #[error("{}: begins with `{first}`, expected a fleet store, with {{\"schema\":\"{expected}\" in its first line; collect into a new file", path.display())]
    NoStore {
        path: PathBuf,
        /// The beginning of the first line.
        first: String,
        expected: &'static str,
    },
    #[error("{}: line {line}: {source}; collect into a new file", path.display())]
    Line { path: PathBuf, line: usize, source: serde_json::Error },
    /// A directory could not be read.
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: contains no results; expected HOST/RUN/run.json, as `numalab fleet submit` \
        creates", path.display())]
    Empty { path: PathBuf },
    #[error("{} holds {held}, expected a fleet's directory, with HOST/RUN/{} in it", path.display(), file::RUN)]
    NoFleet { path: PathBuf, held: Kind },
    #[error("{}: none of its {runs} runs could be read", path.display())]
    NoneReadable { path: PathBuf, runs: usize },
    #[error("{}: nothing collected yet: numalab fleet collect DIR", path.display())]
    NothingCollected { path: PathBuf },
}

impl Classed for FleetError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Store { .. } | Self::Line { .. } => ErrorClass::Failed,
            _ => ErrorClass::BadInput,
        }
    }
}

impl FleetError {
    /// Returns a function that adds the store's path to an error of the system.
    pub(crate) fn store(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Store { path: path.to_owned(), source }
    }
}
