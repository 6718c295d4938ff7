//! Directories that last as long as their process. The next process removes what a killed one left.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Pid, geteuid, test_kill_process};
use tempfile::TempDir;

const PREFIX: &str = "numalab-";

/// An empty directory that is removed with this value.
#[derive(Debug)]
pub struct TemporaryDirectory {
    directory: TempDir,
    /// Locked, because the process id in its name means nothing in other containers.
    _lock: File,
}

impl TemporaryDirectory {
    /// Creates a directory in the system's temporary directory, and removes those that killed
    /// processes of this user left there. The path is short enough for a socket in it.
    ///
    /// # Errors
    /// The system's error.
    pub fn create() -> io::Result<Self> {
        Self::create_in(&std::env::temp_dir())
    }

    fn create_in(parent: &Path) -> io::Result<Self> {
        remove_left(parent);
        let prefix = format!("{PREFIX}{}-", std::process::id());
        let directory = tempfile::Builder::new().prefix(&prefix).tempdir_in(parent)?;
        let lock = File::open(directory.path())?;
        // On a file system without locks, only the process id in the name shows that it is in use.
        let _ = lock.try_lock();
        Ok(Self { directory, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

fn remove_left(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(process_of);
        if process.is_some_and(is_gone) && is_own_and_free(&entry.path()) {
            // A directory that cannot be removed does no harm.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Returns the process in a name such as `numalab-812-x1Y2z3`.
fn process_of(name: &str) -> Option<Pid> {
    let (process, _) = name.strip_prefix(PREFIX)?.split_once('-')?;
    Pid::from_raw(process.parse().ok().filter(|&process| process > 0)?)
}

fn is_gone(process: Pid) -> bool {
    // EPERM means that it exists, and belongs to another user.
    test_kill_process(process) == Err(Errno::SRCH)
}

fn is_own_and_free(directory: &Path) -> bool {
    let found = fs::symlink_metadata(directory);
    let own = found.is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw());
    own && File::open(directory).is_ok_and(|held| held.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_killed_processes_are_removed_and_others_stay() {
        let parent = tempfile::tempdir().unwrap();
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let of_ended =
            |random: &str| parent.path().join(format!("{PREFIX}{}-{random}", ended.id()));
        let (left, locked) = (of_ended("left"), of_ended("locked"));
        let others = ["numalab-x", "numalab-1-y", "else"].map(|name| parent.path().join(name));
        for directory in others.iter().chain([&left, &locked]) {
            fs::create_dir(directory).unwrap();
            fs::write(directory.join("file"), "").unwrap();
        }
        // The directory of a process in another container.
        let held = File::open(&locked).unwrap();
        held.try_lock().unwrap();
        let first = TemporaryDirectory::create_in(parent.path()).unwrap();
        let second = TemporaryDirectory::create_in(parent.path()).unwrap();
        assert!(!left.exists() && locked.exists());
        assert!(others.iter().all(|other| other.exists()));
        let path = first.path().to_owned();
        assert!(path.exists() && second.path().exists() && path != second.path());
        drop(first);
        assert!(!path.exists());
    }
}
