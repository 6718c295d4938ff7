//! Ensures that one process at a time writes to a result directory.

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::bounded::read_file_text;
use crate::error_class::{Classed, ErrorClass};
use crate::file_lock::open_locked;
use crate::files::{FileError, remove_drafts};

/// Name of the lock file in the directory; the file stays when the lock is released.
const LOCK: &str = ".lock";

/// Longer than the decimal digits of any process id.
const MOST_OWNER_BYTES: u64 = 16;

/// Time to wait for the lock. A child forked by a process that was killed holds the lock too, until
/// its exec.
const PATIENCE: Duration = Duration::from_millis(300);

/// Reason why a result directory could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryLockError {
    #[error(
        "{path}: another numalab{process} is writing results to it: wait until it ends, or stop it",
        process = process.map(|process| format!(" (process {process})")).unwrap_or_default()
    )]
    InUse {
        path: PathBuf,
        /// The owner's process id, if it could be read.
        process: Option<u32>,
    },
    /// The lock file could not be written.
    #[error(transparent)]
    Io(#[from] FileError),
}

impl Classed for DirectoryLockError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::InUse { .. } => ErrorClass::Failed,
            Self::Io(error) => error.class(),
        }
    }
}

/// An exclusive lock on a result directory, released by the kernel however the process ends.
#[derive(Debug)]
pub struct DirectoryLock {
    _file: File,
}

impl DirectoryLock {
    /// Locks the directory for this process and removes unfinished drafts that an earlier owner
    /// left. On a file system without locks, prints a note and continues.
    ///
    /// # Errors
    /// [`DirectoryLockError::InUse`] while another process has the directory,
    /// [`DirectoryLockError::Io`] if the directory is not writable.
    pub fn acquire(directory: &Path) -> Result<Self, DirectoryLockError> {
        let path = directory.join(LOCK);
        let mut file = match open_locked(&path, PATIENCE) {
            Ok(file) => file,
            Err(TryLockError::WouldBlock) => {
                // Read without the lock, so it may be missing or that of a previous owner.
                let process = owner(&path);
                return Err(DirectoryLockError::InUse { path: directory.to_owned(), process });
            }
            Err(TryLockError::Error(error)) => {
                return Err(FileError::at(&path, "open and lock it")(error).into());
            }
        };
        write_owner(&mut file).map_err(FileError::at(&path, "write the process id to it"))?;
        // A killed owner may have left drafts; no other process can be writing one now.
        remove_drafts(directory);
        Ok(Self { _file: file })
    }
}

fn owner(path: &Path) -> Option<u32> {
    read_file_text(path, MOST_OWNER_BYTES).ok()?.trim().parse().ok()
}

fn write_owner(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.write_all(format!("{}\n", std::process::id()).as_bytes())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::files::write_atomically;

    #[test]
    fn a_second_owner_is_refused_with_the_first_ones_process() {
        let directory = tempfile::tempdir().unwrap();
        let first = DirectoryLock::acquire(directory.path()).unwrap();
        let error = DirectoryLock::acquire(directory.path()).unwrap_err();
        let process = std::process::id();
        assert!(error.to_string().contains(&format!("(process {process})")), "{error}");
        drop(first);
        DirectoryLock::acquire(directory.path()).unwrap();
    }

    #[test]
    fn drafts_of_an_earlier_owner_are_removed_and_results_stay() {
        let directory = tempfile::tempdir().unwrap();
        let names = ["run.json", ".draft-run.json.a1b2c3"];
        let [result, draft] = names.map(|name| directory.path().join(name));
        write_atomically(&result, "{}").unwrap();
        fs::write(&draft, "{").unwrap();
        let _lock = DirectoryLock::acquire(directory.path()).unwrap();
        assert!(result.exists() && !draft.exists());
    }

    #[test]
    fn a_missing_directory_is_an_error() {
        let error = DirectoryLock::acquire(Path::new("/no/such")).unwrap_err();
        assert!(error.to_string().contains("/no/such/.lock"), "{error}");
    }
}
