//! Words of memory shared by processes of one machine.

use std::ffi::c_void;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use rustix::mm::{self, MapFlags, ProtFlags};

/// Atomic words shared by every process that opened the same file; 0 at first. They stay mapped
/// when the file is removed.
#[derive(Debug)]
pub struct SharedWords {
    start: NonNull<c_void>,
    words: usize,
    _file: File,
}

// SAFETY: the mapping belongs to the process, not to a thread, and is unmapped once, by `drop`.
unsafe impl Send for SharedWords {}
// SAFETY: all that a shared reference gives is atomics.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// Opens or creates the file with access for its owner only, and maps `words` of it. All
    /// processes must pass the same number; each holds a shared flock(2) on the file. A file that
    /// another user created or may open is refused, as is a symbolic link.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for more words than an address space has, else the system's
    /// error: not writable, another user's, no space.
    pub fn open(path: &Path, words: usize) -> io::Result<Self> {
        let too_many = || {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{words} words of shared memory"))
        };
        // No slice is longer than `isize::MAX` bytes.
        let bytes = words
            .checked_mul(size_of::<AtomicU64>())
            .filter(|&bytes| bytes <= isize::MAX.cast_unsigned())
            .ok_or_else(too_many)?;
        let file = create_or_open(path)?;
        // Reserves the space, so that no later access can end in SIGBUS.
        let flags = rustix::fs::FallocateFlags::empty();
        rustix::fs::fallocate(&file, flags, 0, bytes as u64).inspect_err(|_| {
            // The other processes need the same number of words, so the file is of no use to them
            // either.
            let _ = std::fs::remove_file(path);
        })?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: without an address the kernel chooses one where nothing is mapped; the
        // file has at least `bytes`, which were just reserved.
        let start =
            unsafe { mm::mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, &file, 0) }?;
        let start = NonNull::new(start).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(Self { start, words, _file: file })
    }

    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: 1. `words` words from `start`, which is page-aligned, stay mapped while `self` lives;
        // `open` checked that a slice may have this number. 2. All bit patterns are valid.
        // 3. Other processes may change them at any time, which atomics allow. 4. Only this user
        // may open the file (`check_owner`), and numalab never shortens one: no access is past its
        // end.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.words) }
    }
}

/// Creates the file, or opens the one that another process of this user created.
fn create_or_open(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK;
    let mut last = io::ErrorKind::NotFound.into();
    // Between the two calls another process may remove the file, so this is tried again.
    for _ in 0..16 {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600).custom_flags(flags);
        let file = match options.clone().create_new(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => options.open(path),
            made => made,
        };
        match file {
            Ok(file) => {
                check_owner(&file.metadata()?)?;
                file.lock_shared()?;
                // `remove_abandoned` may have unlinked the file before the lock was taken.
                if file.metadata()?.nlink() > 0 {
                    return Ok(file);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// Removes this user's files in `directory` that begin with `prefix` and that no process shares any
/// more: a killed process could not remove its own.
pub fn remove_abandoned(directory: &Path, prefix: &str) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if !entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()) {
            continue;
        }
        let flags = libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK;
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(entry.path());
        let Ok(file) = opened else { continue };
        let is_own = file.metadata().is_ok_and(|found| check_owner(&found).is_ok());
        if is_own && file.try_lock().is_ok() {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Refuses a file that another user created or may open, and could therefore change or truncate.
fn check_owner(file: &std::fs::Metadata) -> io::Result<()> {
    let own = rustix::process::geteuid().as_raw();
    let (user, mode) = (file.uid(), file.mode() & 0o7777);
    if file.is_file() && user == own && mode & 0o077 == 0 {
        return Ok(());
    }
    let said = format!(
        "it exists and is not private to this user (user {user}, mode {mode:o}): expected a \
         file of user {own} with mode 600"
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, said))
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // `open` checked that this does not wrap.
        let bytes = self.words * size_of::<AtomicU64>();
        // SAFETY: the range is this mapping's own, and no reference outlives `self`.
        let _ = unsafe { mm::munmap(self.start.as_ptr(), bytes) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn processes_that_open_the_same_file_share_its_words_even_after_it_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("words");
        let (one, other) =
            (SharedWords::open(&path, 1000).unwrap(), SharedWords::open(&path, 1000).unwrap());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(other.words()[999].load(Ordering::Acquire), 0);
        one.words()[999].store(7, Ordering::Release);
        assert_eq!(other.words()[999].load(Ordering::Acquire), 7);
    }

    #[test]
    fn a_file_that_no_process_shares_is_removed_and_one_in_use_stays() {
        let directory = tempfile::tempdir().unwrap();
        let [used, left, other] =
            ["words-1", "words-2", "other"].map(|name| directory.path().join(name));
        let words = SharedWords::open(&used, 8).unwrap();
        for path in [&left, &other] {
            drop(SharedWords::open(path, 8).unwrap());
        }
        remove_abandoned(directory.path(), "words-");
        assert_eq!([&used, &left, &other].map(|path| path.exists()), [true, false, true]);
        drop(words);
        remove_abandoned(directory.path(), "words-");
        assert!(!used.exists());
    }

    #[test]
    fn more_words_than_an_address_space_has_are_refused_and_nothing_is_made() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("words");
        // In bytes the first wraps to a page, and the second is more than a slice may have.
        for words in [(1 << 61) + 512, 1 << 60] {
            let error = SharedWords::open(&path, words).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
            assert!(error.to_string().contains(&words.to_string()), "{error}");
        }
        assert!(!path.exists());
    }

    #[test]
    fn more_words_than_the_file_system_has_room_for_leave_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("words");
        assert!(SharedWords::open(&path, 1 << 59).is_err());
        assert!(!path.exists());
    }

    #[test]
    fn a_file_that_others_may_open_and_a_link_are_refused() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("words");
        std::fs::write(&path, [0; 64]).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o622)).unwrap();
        let error = SharedWords::open(&path, 8).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert!(error.to_string().contains("mode 622"), "{error}");
        let link = directory.path().join("link");
        symlink(directory.path().join("elsewhere"), &link).unwrap();
        assert!(SharedWords::open(&link, 8).is_err());
    }

    #[test]
    fn a_file_of_another_user_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("words");
        drop(SharedWords::open(&path, 8).unwrap());
        if std::os::unix::fs::chown(&path, Some(65_534), None).is_err() {
            eprintln!("NOT RUN: only root can give a file to another user");
            return;
        }
        let error = SharedWords::open(&path, 8).unwrap_err();
        assert!(error.to_string().contains("user 65534"), "{error}");
    }

    #[test]
    fn a_file_that_cannot_be_made_is_an_error() {
        assert!(SharedWords::open(Path::new("/proc/no-such"), 8).is_err());
    }
}
