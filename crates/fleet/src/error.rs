//! Why a fleet could not be collected or looked at.

use std::io;
use std::path::PathBuf;

use numalab_record::{Kind, file};

/// Why a fleet could not be collected or looked at.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The store failed.
    #[error("{}: {source}", path.display())]
    Store {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// The file is a store of another version, or none.
    #[error("{}: not a fleet store of version {expected} (found {found}); collect into a new file", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// Ours.
        expected: i64,
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
