//! First touch of memory.

use rustix::io::Errno;
use rustix::mm::{self, Advice};

use crate::system_page::base_page_bytes;

/// Touches every page of a page-aligned range for writing, in address order, from the calling
/// thread. `MADV_POPULATE_WRITE` (Linux 5.14) reports as an error the condition that would turn a
/// store into SIGBUS. One store per page follows: it does the work on kernels that do not know the
/// advice, or accept and ignore it (qemu-user), and costs next to nothing elsewhere.
///
/// # Errors
/// `ENOMEM` without memory, `EFAULT` where a store would be SIGBUS.
pub(crate) fn range(bytes: &mut [u8]) -> Result<(), Errno> {
    loop {
        // SAFETY: the range is borrowed for writing; populating changes no content.
        let populated = unsafe {
            mm::madvise(bytes.as_mut_ptr().cast(), bytes.len(), Advice::LinuxPopulateWrite)
        };
        match populated {
            Ok(()) | Err(Errno::INVAL | Errno::NOSYS) => {
                touch(bytes);
                return Ok(());
            }
            // A signal may interrupt the call; pages that are already populated are skipped.
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Stores a byte's own value to each page.
fn touch(bytes: &mut [u8]) {
    let page_bytes = usize::try_from(base_page_bytes()).unwrap_or(4096);
    for page in bytes.chunks_mut(page_bytes) {
        let byte = page.as_mut_ptr();
        // SAFETY: 1. No chunk is empty, and it is borrowed for writing. 2. Volatile, since the
        // value does not change and the store must still happen.
        unsafe { byte.write_volatile(byte.read_volatile()) };
    }
}

/// Requests transparent huge pages where the first touch did not get them (`MADV_COLLAPSE`, Linux
/// 6.1). The proof finds out whether that worked.
pub(crate) fn collapse(bytes: &mut [u8]) {
    // SAFETY: the range is borrowed for writing; collapsing copies pages without changing content.
    unsafe {
        libc::madvise(bytes.as_mut_ptr().cast(), bytes.len(), libc::MADV_COLLAPSE);
    }
}
