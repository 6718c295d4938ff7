//! The directory of running guests: each has a directory with its sockets, locked while the guest's
//! owner lives.
//!
//! A directory with a free lock was left by an owner that was killed. Processes that were provably
//! started for it, with exactly that directory's monitor among their arguments, are killed, and the
//! directory is removed.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use numalab_formats::size::format_rounded;
use numalab_host::files::create_unique_directory;
use numalab_host::proc::processes;
use numalab_host::{Classed, Root, from_json};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

/// The path of a Unix socket has room for 107 bytes; names here take up to 12.
const MOST_PATH_BYTES: usize = 95;
/// A user who can connect to QEMU's monitor can read and write the guest and the files of its
/// owner.
const OWN_MODE: u32 = 0o700;
const ACCESS_OF_OTHERS: u32 = 0o077;
const LOCK: &str = "lock";
const RECORD: &str = "guest.json";
/// The control socket, which other processes may use (`numalab guest pin`).
pub const CONTROL: &str = "control.sock";
const GONE_LIMIT: Duration = Duration::from_secs(5);

/// The directory of running guests.
#[derive(Clone, Debug)]
pub struct Runtime {
    root: PathBuf,
}

/// The record of a running guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestRecord {
    pub owner: u32,
    pub cpus: usize,
    pub nodes: usize,
    pub memory_bytes: u64,
    pub command: Vec<String>,
}

/// A guest that is running now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningGuest {
    pub directory: PathBuf,
    /// The process id of the guest's QEMU, once QEMU has been started.
    pub qemu: Option<u32>,
    pub record: GuestRecord,
}

impl fmt::Display for RunningGuest {
    /// Writes the guest on a line, and the command that reaches it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GuestRecord { nodes, cpus, memory_bytes, command, .. } = &self.record;
        match self.qemu {
            Some(id) => write!(f, "QEMU {id}")?,
            None => write!(f, "QEMU not started yet")?,
        }
        let (memory, command) = (format_rounded(*memory_bytes), command.join(" "));
        writeln!(f, ": {nodes} nodes, {cpus} cpus, {memory}: {command}")?;
        writeln!(f, "  numalab guest pin --qmp {}/{CONTROL}", self.directory.display())
    }
}

/// The directory of one guest of this process, removed on drop.
#[derive(Debug)]
pub struct GuestDirectory {
    path: PathBuf,
    _lock: File,
}

/// Reason why there is no directory for running guests.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The system refused.
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    /// The directory belongs to another user.
    #[error("{path}: belongs to user {owner}, expected {user}; set XDG_RUNTIME_DIR")]
    Foreign {
        path: PathBuf,
        /// The user id of its owner.
        owner: u32,
        /// The user id of this process.
        user: u32,
    },
    #[error(
        "{path}: {length} bytes, expected at most {MOST_PATH_BYTES} so that sockets fit; set XDG_RUNTIME_DIR"
    )]
    TooLong { path: PathBuf, length: usize },
}

impl Classed for RuntimeError {}

impl Runtime {
    /// Opens the user's directory: `$XDG_RUNTIME_DIR/numalab`, else `/tmp/numalab-UID`. Removes the
    /// remains of dead guests.
    pub fn open() -> Result<Self, RuntimeError> {
        let user = rustix::process::geteuid().as_raw();
        let variable = std::env::var_os("XDG_RUNTIME_DIR").filter(|value| !value.is_empty());
        let own = variable.map(|directory| PathBuf::from(directory).join("numalab"));
        Self::at(own.unwrap_or_else(|| PathBuf::from(format!("/tmp/numalab-{user}"))))
    }

    /// Opens this directory, creating it if necessary, and removes the remains of dead guests.
    pub fn at(root: impl Into<PathBuf>) -> Result<Self, RuntimeError> {
        let root = root.into();
        // The mode applies at creation, so that the directory is never open to other users.
        let made = DirBuilder::new().recursive(true).mode(OWN_MODE).create(&root);
        made.map_err(|source| io_at(&root, source))?;
        let data = fs::symlink_metadata(&root).map_err(|source| io_at(&root, source))?;
        let user = rustix::process::geteuid().as_raw();
        // A link is refused rather than followed: every user can create one in /tmp.
        if data.uid() != user || !data.is_dir() {
            return Err(RuntimeError::Foreign { path: root, owner: data.uid(), user });
        }
        // An existing directory may be open to other users, who could connect to the sockets in it.
        if data.mode() & ACCESS_OF_OTHERS != 0 {
            close_to_others(&root)?;
        }
        let runtime = Self { root };
        runtime.clean()?;
        Ok(runtime)
    }

    /// Returns this user's running guests.
    pub fn guests(&self) -> Result<Vec<RunningGuest>, RuntimeError> {
        let mut guests = Vec::new();
        for directory in self.directories()? {
            let text = fs::read(directory.join(RECORD)).unwrap_or_default();
            // A guest that is just being created has no record yet.
            if let Ok(record) = from_json(&text)
                // The lock decides whether the guest lives; its record may be a leftover.
                && is_held(&directory)
            {
                guests.push(RunningGuest {
                    qemu: processes_of(&directory).first().copied(),
                    directory,
                    record,
                });
            }
        }
        Ok(guests)
    }

    /// Creates the directory of a new guest.
    pub fn begin(&self, record: &GuestRecord) -> Result<GuestDirectory, RuntimeError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.begin_at(record, now)
    }

    fn begin_at(
        &self,
        record: &GuestRecord,
        now: Duration,
    ) -> Result<GuestDirectory, RuntimeError> {
        let _all = self.lock_all()?;
        let path = self.own_directory(record.owner, now)?;
        let lock = lock_file(&path).map_err(|source| io_at(&path, source))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|source| io_at(&path, source.into()))?;
        let directory = GuestDirectory { path, _lock: lock };
        let text = serde_json::to_vec(record).map_err(io::Error::from);
        let file = directory.path.join(RECORD);
        text.and_then(|text| fs::write(&file, text)).map_err(|source| io_at(&file, source))?;
        Ok(directory)
    }

    /// Creates a directory with an unused name: the wall clock may be set back to a moment at which
    /// this process has begun a guest already.
    fn own_directory(&self, owner: u32, now: Duration) -> Result<PathBuf, RuntimeError> {
        let name = format!("guest-{owner}-{:x}", now.as_nanos());
        let path = self.root.join(&name);
        let length = path.as_os_str().len();
        if length > MOST_PATH_BYTES {
            return Err(RuntimeError::TooLong { path, length });
        }
        let made = create_unique_directory(&self.root, &name);
        let path = made.map_err(|source| io_at(&path, source))?;
        close_to_others(&path)?;
        Ok(path)
    }

    /// Kills and removes the remains of dead owners.
    fn clean(&self) -> Result<(), RuntimeError> {
        let _all = self.lock_all()?;
        for directory in self.directories()? {
            if is_held(&directory) {
                continue;
            }
            for process in processes_of(&directory) {
                end(process, &directory);
            }
            fs::remove_dir_all(&directory).map_err(|source| io_at(&directory, source))?;
        }
        Ok(())
    }

    /// Takes the lock that is held while guests begin or are cleaned up, so that a directory
    /// without its own lock certainly belongs to a dead owner.
    fn lock_all(&self) -> Result<File, RuntimeError> {
        let lock = lock_file(&self.root).map_err(|source| io_at(&self.root, source))?;
        flock(&lock, FlockOperation::LockExclusive)
            .map_err(|source| io_at(&self.root, source.into()))?;
        Ok(lock)
    }

    fn directories(&self) -> Result<Vec<PathBuf>, RuntimeError> {
        let entries = fs::read_dir(&self.root).map_err(|source| io_at(&self.root, source))?;
        let ours = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("guest-");
        let entries = entries.filter_map(Result::ok).filter(ours);
        let mut directories: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        directories.sort();
        Ok(directories)
    }
}

impl GuestDirectory {
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for GuestDirectory {
    fn drop(&mut self) {
        // A directory that cannot be removed now is removed by the next start.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Returns the argument that only the QEMU of this directory was started with.
pub fn mark_of(directory: &Path) -> String {
    let path = directory.join(CONTROL);
    let path = path.to_string_lossy().replace(',', ",,");
    format!("socket,id=control,path={path},server=on,wait=off")
}

fn io_at(path: &Path, source: io::Error) -> RuntimeError {
    RuntimeError::Io { path: path.to_path_buf(), source }
}

fn close_to_others(directory: &Path) -> Result<(), RuntimeError> {
    let closed = fs::set_permissions(directory, Permissions::from_mode(OWN_MODE));
    closed.map_err(|source| io_at(directory, source))
}

fn lock_file(directory: &Path) -> io::Result<File> {
    let mut open = OpenOptions::new();
    // Does not follow a link placed there while the directory was open to other users.
    let no_link = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    open.create(true).truncate(false).write(true).custom_flags(no_link);
    open.open(directory.join(LOCK))
}

fn is_held(directory: &Path) -> bool {
    // Without a lock file the directory has no owner: it is created before the record.
    let Ok(lock) = File::open(directory.join(LOCK)) else {
        return false;
    };
    flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err()
}

/// Returns the processes that were started for this directory.
fn processes_of(directory: &Path) -> Vec<u32> {
    let mark = mark_of(directory);
    processes().filter(|process| was_started_with(*process, &mark)).collect()
}

fn was_started_with(process: u32, mark: &str) -> bool {
    let arguments = Root::live().arguments(process).unwrap_or_default();
    arguments.iter().any(|argument| argument == mark)
}

/// Kills the process, if its id has not been reused.
fn end(process: u32, directory: &Path) {
    let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) else {
        return;
    };
    // Compared again below, since the id may have been reused after the scan.
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
        return;
    };
    // The handle stays with this process even if its id is reused.
    if was_started_with(process, &mark_of(directory)) {
        let _ = pidfd_send_signal(&handle, Signal::KILL);
        let limit = rustix::event::Timespec {
            tv_sec: i64::try_from(GONE_LIMIT.as_secs()).unwrap_or_default(),
            tv_nsec: 0,
        };
        let mut gone = [rustix::event::PollFd::new(&handle, rustix::event::PollFlags::IN)];
        let _ = rustix::event::poll(&mut gone, Some(&limit));
    }
}

#[cfg(test)]
mod tests;
