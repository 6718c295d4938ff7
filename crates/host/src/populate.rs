//! First touch.

use std::ptr::NonNull;

use rustix::io::Errno;
use rustix::mm::{self, Advice};

use crate::system_page::base_page_bytes;

/// Touches every page of a range for writing, in address order, from the calling thread.
/// `MADV_POPULATE_WRITE` (Linux 5.14) reports as an error what a store would
/// turn into SIGBUS; then one store per page does the work where the advice is unknown, or
/// accepted and ignored (qemu-user), and costs next to nothing where it is done. `start` is the first byte of the
/// mapping, which must contain the page-aligned range.
///
/// # Errors
/// `ENOMEM` without memory, `EFAULT` where a store would be SIGBUS.
pub(crate) fn range(address: usize, length: usize, start: NonNull<u8>) -> Result<(), Errno> {
    let first = start.as_ptr().with_addr(address);
    // SAFETY: the range is mapped and writable; populating changes no content.
    match unsafe { mm::madvise(first.cast(), length, Advice::LinuxPopulateWrite) } {
        Ok(()) | Err(Errno::INVAL | Errno::NOSYS) => {
            touch(first, length);
            Ok(())
        }
        // A signal may interrupt it; what is populated already is skipped.
        Err(Errno::INTR | Errno::AGAIN) => range(address, length, start),
        Err(errno) => Err(errno),
    }
}

/// Stores what is there already to each page.
fn touch(first: *mut u8, length: usize) {
    let page_bytes = usize::try_from(base_page_bytes()).unwrap_or(4096);
    for offset in (0..length).step_by(page_bytes) {
        // SAFETY: 1. `offset` is less than `length`, and the range is mapped and
        // writable. 2. The caller holds the mapping exclusively. 3. Volatile, since the
        // value does not change and the store must still happen.
        unsafe {
            let byte = first.add(offset);
            byte.write_volatile(byte.read_volatile());
        }
    }
}

/// Asks for transparent huge pages where the first touch did not get them
/// (`MADV_COLLAPSE`, Linux 6.1). Whether it helped is for the proof to find.
pub(crate) fn collapse(first: *mut u8, length: usize) {
    // SAFETY: the range is mapped; collapsing copies pages without changing content.
    unsafe {
        libc::madvise(first.cast(), length, libc::MADV_COLLAPSE);
    }
}
