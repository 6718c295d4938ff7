//! Why a fleet could not be collected or looked at.

use std::io;
use std::path::{Path, PathBuf};

use numalab_record::{Kind, file};

/// Why a fleet could not be collected or looked at.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The store could not be read or written.
    #[error("{}: {source}", path.display())]
    Store {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file is a store of an earlier version.
    #[error("{}: a fleet store of an earlier version (SQLite), which is no longer read; collect the runs again into a new file: numalab fleet collect DIR", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
    },
    /// The file is a store of a later version, or none.
    #[error("{}: begins with `{first}`, expected a fleet store, with {{\"schema\":\"{expected}\" in its first line; collect into a new file", path.display())]
    NoStore {
        /// The file.
        path: PathBuf,
        /// The beginning of its first line.
        first: String,
        /// The schema of a store.
        expected: &'static str,
    },
    /// A line of the store is not what numalab writes.
    #[error("{}: line {line}: {source}; collect into a new file", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line's number.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A directory could not be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// There is nothing to collect.
    #[error("{}: no results in it; expected HOST/RUN/run.json, as `numalab fleet submit` leaves them", path.display())]
    Empty {
        /// The directory.
        path: PathBuf,
    },
    /// The directory is that of one result.
    #[error("{} holds {held}, expected a fleet's directory, with HOST/RUN/{} in it", path.display(), file::RUN)]
    NoFleet {
        /// The directory.
        path: PathBuf,
        /// What it holds.
        held: Kind,
    },
    /// There is nothing to report.
    #[error("{}: nothing collected yet: numalab fleet collect DIR", path.display())]
    NothingCollected {
        /// The file.
        path: PathBuf,
    },
}

impl FleetError {
    /// That the system says this of the store.
    pub(crate) fn store(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Store { path: path.to_owned(), source }
    }
}
