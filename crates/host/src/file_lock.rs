//! Exclusive locks on files.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::stderr::note;

/// Opens the file for reading and appending, creating it if necessary, and takes an exclusive
/// flock(2) on it. Retries for up to `patience` while another process holds the lock. The kernel
/// releases it however the process ends. On a file system without locks, prints a note and
/// continues.
///
/// # Errors
/// [`TryLockError::WouldBlock`] if another process still holds the lock, else the system's error.
pub fn open_locked(path: &Path, patience: Duration) -> Result<File, TryLockError> {
    let begun = Instant::now();
    loop {
        let opened = OpenOptions::new().read(true).append(true).create(true).open(path);
        let file = opened.map_err(TryLockError::Error)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) if begun.elapsed() < patience => {
                thread::sleep(Duration::from_millis(10));
                continue;
            }
            Err(TryLockError::Error(error)) if has_no_locks(&error) => {
                let path = path.display();
                note(format_args!(
                    "{path}: cannot be locked ({error}): make sure that only one run writes to it"
                ));
                return Ok(file);
            }
            Err(error) => return Err(error),
        }
        // The previous owner may have renamed or replaced the file while we waited for its lock.
        let held = file.metadata().map_err(TryLockError::Error)?;
        let same = |now: fs::Metadata| (now.dev(), now.ino()) == (held.dev(), held.ino());
        if fs::metadata(path).is_ok_and(same) {
            return Ok(file);
        }
    }
}

/// Returns true if the file system has no locks: Lustre without `-o flock` answers ENOSYS, NFS
/// without a lock daemon ENOLCK.
fn has_no_locks(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported || error.raw_os_error() == Some(libc::ENOLCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiter_gets_the_file_that_has_the_name_by_then() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("part");
        let first = open_locked(&path, Duration::ZERO).unwrap();
        let refused = open_locked(&path, Duration::ZERO).unwrap_err();
        assert!(matches!(refused, TryLockError::WouldBlock));
        let waiting = thread::spawn({
            let path = path.clone();
            move || open_locked(&path, Duration::MAX).unwrap()
        });
        fs::rename(&path, directory.path().join("whole")).unwrap();
        fs::write(&path, "another").unwrap();
        drop(first);
        assert_eq!(waiting.join().unwrap().metadata().unwrap().len(), 7);
    }

    #[test]
    fn a_file_that_cannot_be_made_is_the_systems_error() {
        let error = open_locked(Path::new("/no/such/file"), Duration::ZERO).unwrap_err();
        let TryLockError::Error(error) = error else { panic!("{error}") };
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
