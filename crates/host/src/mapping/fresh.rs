//! Memory on which first touches can be repeated.

use std::fs::File;
use std::ops::Range;

use rustix::mm::{self, Advice, MapFlags, ProtFlags};

use super::{Mapping, granule};
use crate::mapping_error::MappingError;
use crate::system_page::base_pages;
use std::ptr::NonNull;

impl Mapping {
    /// Maps up to `most_bytes` of this program's file, in whole base pages, privately: stores change
    /// copies of its pages. Returns `None` if the file cannot be mapped or is shorter than a page.
    pub fn of_own_program(most_bytes: usize) -> Option<Self> {
        let file = File::open("/proc/self/exe").ok()?;
        let length = usize::try_from(file.metadata().ok()?.len()).ok()?.min(most_bytes);
        let page_bytes = granule(base_pages(), length).ok()?;
        let mapped_bytes = length / page_bytes * page_bytes;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE;
        // SAFETY: without an address the kernel chooses one where nothing is mapped. A running program's
        // file is not written to (ETXTBSY); replacing it makes another file.
        let mapped =
            unsafe { mm::mmap(std::ptr::null_mut(), mapped_bytes, access, flags, &file, 0) };
        let reservation = NonNull::new(mapped.ok()?)?;
        Some(Self {
            reservation,
            reservation_bytes: mapped_bytes,
            start: reservation.cast(),
            len_bytes: mapped_bytes,
            mapped_bytes,
            pages: base_pages(),
            node: None,
        })
    }

    /// Frees the pages of a range of bytes: the next access to each is a first touch again, and
    /// finds zeros or the file's content.
    ///
    /// # Errors
    /// [`MappingError::Size`] if the range is not in the mapping, [`MappingError::Kernel`] if it
    /// does not consist of whole pages.
    pub fn discard(&mut self, bytes: Range<usize>) -> Result<(), MappingError> {
        let size_bytes = bytes.len();
        let Some(range) = self.pages_mut().get_mut(bytes) else {
            return Err(MappingError::Size { size_bytes });
        };
        // SAFETY: the range is borrowed for writing; its content afterwards is that of new pages.
        let freed =
            unsafe { mm::madvise(range.as_mut_ptr().cast(), size_bytes, Advice::LinuxDontNeed) };
        freed.map_err(|errno| self.kernel_error("madvise", errno))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discarded_memory_is_zero_or_the_files_content_again() {
        let mut memory = Mapping::new(64 << 10, base_pages()).unwrap();
        memory.as_bytes_mut().fill(7);
        memory.discard(0..32 << 10).unwrap();
        assert_eq!([memory.as_bytes()[0], memory.as_bytes()[32 << 10]], [0, 7]);
        assert!(memory.discard(0..128 << 10).is_err());
        let mut program = Mapping::of_own_program(64 << 10).unwrap();
        program.as_bytes_mut()[1] = 0;
        program.discard(0..64 << 10).unwrap();
        assert_eq!(program.as_bytes()[..4], *b"\x7fELF");
    }
}
