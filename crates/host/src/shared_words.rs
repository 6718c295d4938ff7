//! Words of memory that processes of one machine share.

use std::ffi::c_void;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use rustix::mm::{self, MapFlags, ProtFlags};

/// Atomic words which every process that opened the same file sees alike; 0 at first.
/// They stay mapped when the file is removed.
#[derive(Debug)]
pub struct SharedWords {
    start: NonNull<c_void>,
    words: usize,
    _file: File,
}

// SAFETY: the memory belongs to the process, and is only ever accessed by atomics.
unsafe impl Send for SharedWords {}
// SAFETY: as above.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// Opens or makes the file, which only its owner may read, and maps `words` of it. All
    /// who share it must ask for the same number.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for more words than an address space has; else what the
    /// system says of the file: not writable, owned by another, no space.
    pub fn open(path: &Path, words: usize) -> io::Result<Self> {
        let too_many = || {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{words} words of shared memory"))
        };
        // No slice is longer than `isize::MAX` bytes.
        let bytes = words
            .checked_mul(size_of::<AtomicU64>())
            .filter(|&bytes| bytes <= isize::MAX.cast_unsigned())
            .ok_or_else(too_many)?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
            .open(path)?;
        // Reserves the space, so that no later access can end in SIGBUS for want of it.
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes as u64)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: without an address the kernel chooses one where nothing is mapped; the
        // file has at least `bytes`, which were just reserved.
        let start =
            unsafe { mm::mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, &file, 0) }?;
        let start = NonNull::new(start).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(Self { start, words, _file: file })
    }

    /// The words.
    #[must_use]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: 1. so many words from `start`, which is page-aligned, stay mapped while
        // `self` lives. 2. All bit patterns are valid. 3. Other processes change them, but
        // everyone by atomics only; nobody who knows this type shortens the file.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.words) }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // `open` has seen that this does not wrap.
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
    fn whoever_opens_the_same_file_sees_the_same_words_even_after_it_is_removed() {
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
    fn more_words_than_an_address_space_has_are_refused_and_nothing_is_made() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("words");
        // In bytes the first wraps to a page, the second is more than a slice may be.
        for words in [(1 << 61) + 512, 1 << 60] {
            let error = SharedWords::open(&path, words).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
            assert!(error.to_string().contains(&words.to_string()), "{error}");
        }
        assert!(!path.exists());
    }

    #[test]
    fn a_file_that_cannot_be_made_is_an_error() {
        assert!(SharedWords::open(Path::new("/proc/no-such"), 8).is_err());
    }
}
