//! The cache on disk: kernels, unpacked packages, images, emulators.
//!
//! Everything in it can be made again, so any part may be removed at any time. Entries are made in
//! a separate directory and renamed into place, so an existing entry is always complete.

mod trust;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use numalab_host::Classed;
use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

pub(crate) use trust::altered;

/// The directory with the parts of guests.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

/// The content of an entry of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// A distribution's kernel and its package.
    Kernel,
    Image,
    /// An unpacked package of the distribution.
    Package,
    /// A QEMU unpacked from packages, with a record of them.
    Qemu,
    /// A fact about this machine (such as KVM being usable).
    Probe,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheEntry {
    pub kind: EntryKind,
    /// Name: a package with its version, or a content hash.
    pub name: String,
    pub size_bytes: u64,
    /// Time of creation or of the last use.
    pub used: SystemTime,
}

/// Reasons why the cache cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    #[error("no directory for the cache: set NUMALAB_CACHE, XDG_CACHE_HOME or HOME to a directory")]
    NoPlace,
    /// The directory belongs to another user, who could change the programs in it.
    #[error(
        "{path}: belongs to user {owner}, expected {user} or root; set NUMALAB_CACHE to your own \
         directory"
    )]
    Foreign { path: PathBuf, owner: u32, user: u32 },
    #[error("{path}: mode {mode:o}, which lets every user change what is run: chmod o-w {path}")]
    Open {
        path: PathBuf,
        /// Permissions of the directory.
        mode: u32,
    },
    #[error("{name:?}: expected the name of an entry in the cache, without /")]
    Name { name: String },
    /// An operation failed.
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

impl Classed for CacheError {}

/// Lock held while an entry is created, so that two processes do not create it twice.
#[derive(Debug)]
pub struct CacheLock {
    _file: File,
}

impl EntryKind {
    const ALL: [Self; 5] = [Self::Kernel, Self::Image, Self::Package, Self::Qemu, Self::Probe];

    /// Returns true if the files of such entries are checked for changes; an emulator's would take
    /// too long each time.
    fn is_sealed(self) -> bool {
        matches!(self, Self::Kernel | Self::Package)
    }

    /// Returns its name, which is also that of its directory.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Image => "image",
            Self::Package => "package",
            Self::Qemu => "qemu",
            Self::Probe => "probe",
        }
    }
}

impl Cache {
    /// Opens the user's cache: `$NUMALAB_CACHE`, otherwise `$XDG_CACHE_HOME/numalab`, otherwise
    /// `~/.cache/numalab`.
    ///
    /// # Errors
    /// [`CacheError`] if none of the variables is set.
    pub fn open() -> Result<Self, CacheError> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let root = variable("NUMALAB_CACHE")
            .map(PathBuf::from)
            .or_else(|| variable("XDG_CACHE_HOME").map(|dir| PathBuf::from(dir).join("numalab")))
            .or_else(|| variable("HOME").map(|dir| PathBuf::from(dir).join(".cache/numalab")));
        Self::at(root.ok_or(CacheError::NoPlace)?)
    }

    /// Opens the cache in this directory, which is created with the first entry.
    ///
    /// # Errors
    /// [`CacheError`] if the path is empty, or leads through a directory that other users may write
    /// to.
    pub fn at(root: impl Into<PathBuf>) -> Result<Self, CacheError> {
        let root = root.into();
        let root = std::path::absolute(&root).map_err(|source| io_at(&root, source))?;
        trust::check_owner(&root)?;
        for kind in EntryKind::ALL {
            trust::check_owner(&root.join(kind.name()))?;
        }
        Ok(Self { root })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path of an entry, even if it does not exist.
    pub fn path(&self, kind: EntryKind, name: &str) -> PathBuf {
        self.root.join(kind.name()).join(name)
    }

    /// Waits for the lock that is needed to create entries.
    pub fn lock(&self) -> Result<CacheLock, CacheError> {
        fs::create_dir_all(&self.root).map_err(|source| io_at(&self.root, source))?;
        let path = self.root.join("lock");
        let open = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = open.map_err(|source| io_at(&path, source))?;
        flock(&file, FlockOperation::LockExclusive)
            .map_err(|source| io_at(&path, source.into()))?;
        Ok(CacheLock { _file: file })
    }

    /// Creates an entry: `fill` works in an empty directory, which becomes the entry when it is
    /// done.
    ///
    /// # Errors
    /// Errors of `fill`, or [`CacheError::Io`] as `E`.
    pub fn make<E: From<CacheError>>(
        &self,
        kind: EntryKind,
        name: &str,
        fill: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<PathBuf, E> {
        trust::check_name(name)?;
        let done = self.path(kind, name);
        let io = |path: &Path, result: io::Result<()>| {
            result.map_err(|source| E::from(io_at(path, source)))
        };
        // The name is unique, even if a process in another pid namespace has the same process id.
        let working = self.working().map_err(|source| io_at(&self.root, source))?;
        fill(working.path())?;
        if kind.is_sealed() {
            io(working.path(), trust::seal(working.path()))?;
        }
        let parent = self.root.join(kind.name());
        io(&parent, fs::create_dir_all(&parent))?;
        if done.exists() {
            io(&done, fs::remove_dir_all(&done))?;
        }
        io(&done, fs::rename(working.path(), &done))?;
        // The directory was renamed, so nothing is left to remove.
        let _ = working.keep();
        Ok(done)
    }

    fn working(&self) -> io::Result<TempDir> {
        fs::create_dir_all(&self.root)?;
        let mode = fs::Permissions::from_mode(0o777);
        tempfile::Builder::new().prefix("making-").permissions(mode).tempdir_in(&self.root)
    }

    /// Returns true if there is an unchanged entry with this name.
    pub fn holds(&self, kind: EntryKind, name: &str) -> bool {
        let entry = self.path(kind, name);
        trust::check_name(name).is_ok() && entry.exists() && altered(&entry, &|_| true).is_none()
    }

    /// Marks an entry as used now; the least recently used entries are removed first.
    pub fn touch(&self, kind: EntryKind, name: &str) {
        // A read-only cache still works; only the time of use is not updated.
        if let Ok(directory) = File::open(self.path(kind, name)) {
            let _ = directory.set_modified(SystemTime::now());
        }
    }

    /// Returns all entries, by kind and name.
    pub fn entries(&self) -> Result<Vec<CacheEntry>, CacheError> {
        let mut entries = Vec::new();
        for kind in EntryKind::ALL {
            for entry in children(&self.root.join(kind.name()))? {
                let path = entry.path();
                let used = entry.metadata().and_then(|data| data.modified());
                entries.push(CacheEntry {
                    kind,
                    name: entry.file_name().to_string_lossy().into_owned(),
                    size_bytes: disk_bytes(&path)?,
                    used: used.map_err(|source| io_at(&path, source))?,
                });
            }
        }
        entries.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
        Ok(entries)
    }

    /// Returns the size of the whole cache on disk, in bytes.
    pub fn size_bytes(&self) -> Result<u64, CacheError> {
        if !self.root.exists() {
            return Ok(0);
        }
        disk_bytes(&self.root)
    }

    pub fn remove(&self, kind: EntryKind, name: &str) -> Result<(), CacheError> {
        trust::check_name(name)?;
        let path = self.path(kind, name);
        fs::remove_dir_all(&path).map_err(|source| io_at(&path, source))
    }

    /// Removes the least recently used entries of a kind until the rest is no larger than
    /// `most_bytes`; never removes `keep`.
    ///
    /// # Errors
    /// [`CacheError`] if the cache cannot be read or changed.
    pub fn make_room(
        &self,
        kind: EntryKind,
        most_bytes: u64,
        keep: &str,
    ) -> Result<(), CacheError> {
        let mut entries = self.entries()?;
        entries.retain(|entry| entry.kind == kind);
        entries.sort_by_key(|entry| entry.used);
        let mut total: u64 = entries.iter().map(|entry| entry.size_bytes).sum();
        for entry in entries.iter().filter(|entry| entry.name != keep) {
            if total <= most_bytes {
                break;
            }
            self.remove(kind, &entry.name)?;
            total -= entry.size_bytes;
        }
        Ok(())
    }

    /// Removes every entry; the empty cache remains.
    pub fn clear(&self) -> Result<(), CacheError> {
        let _lock = self.lock()?;
        for kind in EntryKind::ALL {
            let path = self.root.join(kind.name());
            if path.exists() {
                fs::remove_dir_all(&path).map_err(|source| io_at(&path, source))?;
            }
        }
        Ok(())
    }
}

fn io_at(path: &Path, source: io::Error) -> CacheError {
    CacheError::Io { path: path.to_path_buf(), source }
}

fn children(directory: &Path) -> Result<Vec<fs::DirEntry>, CacheError> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|source| io_at(directory, source))?,
    };
    entries.collect::<Result<_, _>>().map_err(|source| io_at(directory, source))
}

/// Returns the size of a file or tree on disk in bytes; links are not followed.
fn disk_bytes(path: &Path) -> Result<u64, CacheError> {
    use std::os::unix::fs::MetadataExt;
    let data = fs::symlink_metadata(path).map_err(|source| io_at(path, source))?;
    let mut bytes = data.blocks() * 512;
    if data.is_dir() {
        for child in children(path)? {
            bytes += disk_bytes(&child.path())?;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
