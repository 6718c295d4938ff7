//! Bits of page table entries that record whether a page was used or written
//! (`Documentation/filesystems/proc.rst`, `clear_refs`; `Documentation/admin-guide/mm/pagemap.rst`,
//! `soft-dirty.rst`).

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;

use crate::mapping::Mapping;
use crate::system_page::base_page_bytes;
use crate::system_page::base_pages;

/// Bytes of an entry of `pagemap`.
const ENTRY_BYTES: usize = 8;
/// Bit of an entry: the page was written since soft-dirty bits were cleared.
const SOFT_DIRTY: u64 = 1 << 55;
/// Entries read at a time.
const BATCH: u64 = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClearedBits {
    Referenced,
    /// The bits of written pages. Clearing them makes a page read-only until its next write, which
    /// causes a fault.
    SoftDirty,
}

/// Clears these bits of all pages of a process. The kernel does not flush TLBs for referenced bits:
/// a page with a TLB entry is seen as used again only after that entry is evicted.
///
/// # Errors
/// The system's error: no such process, another user's, a kernel without such bits.
pub fn clear_bits(process: u32, bits: ClearedBits) -> io::Result<()> {
    let word = match bits {
        ClearedBits::Referenced => "1",
        ClearedBits::SoftDirty => "4",
    };
    fs::write(format!("/proc/{process}/clear_refs"), word)
}

/// Returns the first addresses of the pages in a range that were written since soft-dirty bits were
/// cleared.
///
/// # Errors
/// The system's error.
pub fn soft_dirty_pages(process: u32, start: u64, end: u64) -> io::Result<Vec<u64>> {
    let file = File::open(format!("/proc/{process}/pagemap"))?;
    let page_bytes = base_page_bytes();
    let (mut page, last) = (start / page_bytes, end / page_bytes);
    let mut written = Vec::new();
    while page < last {
        let count = usize::try_from((last - page).min(BATCH)).unwrap_or(0);
        let mut entries = vec![0_u8; count * ENTRY_BYTES];
        let read = file.read_at(&mut entries, page * ENTRY_BYTES as u64)? / ENTRY_BYTES;
        let (entries, _) = entries.as_chunks::<ENTRY_BYTES>();
        for (at, entry) in (page..).zip(&entries[..read]) {
            if u64::from_ne_bytes(*entry) & SOFT_DIRTY != 0 {
                written.push(at * page_bytes);
            }
        }
        if read < count {
            break;
        }
        page += read as u64;
    }
    Ok(written)
}

/// Reports whether this kernel keeps soft-dirty bits (`CONFIG_MEM_SOFT_DIRTY`), by trying it on one
/// of our pages: without them, clearing silently does nothing.
pub fn has_soft_dirty() -> bool {
    let own = std::process::id();
    let tried = || {
        let page_bytes = usize::try_from(base_page_bytes()).ok()?;
        let mut mapping = Mapping::new(2 * page_bytes, base_pages()).ok()?;
        mapping.as_bytes_mut().fill(1);
        clear_bits(own, ClearedBits::SoftDirty).ok()?;
        mapping.as_bytes_mut()[page_bytes] = 2;
        let start = mapping.span().address as u64;
        let end = start + 2 * page_bytes as u64;
        Some(soft_dirty_pages(own, start, end).ok()? == [start + page_bytes as u64])
    };
    tried().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::smaps;

    #[test]
    fn pages_that_are_used_after_clearing_are_referenced_and_others_are_not() {
        let mut mapping = Mapping::new(64 << 12, base_pages()).unwrap();
        // Neighbouring mappings of other tests stay separate: the kernel merges those of the same
        // kind.
        let (address, bytes) = (mapping.span().address as *mut _, mapping.span().len_bytes);
        // SAFETY: this is the mapping's own range, and the change affects only core dumps.
        unsafe { rustix::mm::madvise(address, bytes, rustix::mm::Advice::LinuxDontDump) }.unwrap();
        mapping.as_bytes_mut().fill(1);
        let (own, start) = (std::process::id(), mapping.span().address as u64);
        let referenced = || {
            let text = fs::read_to_string(format!("/proc/{own}/smaps")).unwrap();
            let found = smaps(&text).into_iter().find(|of| of.start == start);
            found.unwrap().referenced_bytes
        };
        assert_eq!(referenced(), 64 << 12);
        clear_bits(own, ClearedBits::Referenced).unwrap();
        assert_eq!(referenced(), 0);
        // More pages than any TLB has entries.
        Mapping::new(64 << 20, base_pages()).unwrap().as_bytes_mut().fill(1);
        mapping.as_bytes_mut()[..3 << 12].fill(2);
        assert_eq!(referenced(), 3 << 12);
    }

    #[test]
    fn written_pages_are_found_where_the_kernel_keeps_soft_dirty_bits() {
        if !has_soft_dirty() {
            eprintln!("NOT RUN: this kernel has no soft-dirty bits");
            return;
        }
        let mut mapping = Mapping::new(8 << 12, base_pages()).unwrap();
        mapping.as_bytes_mut().fill(1);
        let (own, start) = (std::process::id(), mapping.span().address as u64);
        clear_bits(own, ClearedBits::SoftDirty).unwrap();
        mapping.as_bytes_mut()[5 << 12] = 2;
        let written = soft_dirty_pages(own, start, start + (8 << 12)).unwrap();
        assert_eq!(written, [start + (5 << 12)]);
    }

    #[test]
    fn a_missing_process_has_no_bits() {
        let gone = clear_bits(u32::MAX, ClearedBits::Referenced).unwrap_err();
        assert_eq!(gone.kind(), io::ErrorKind::NotFound);
        assert!(soft_dirty_pages(u32::MAX, 0, 4096).is_err());
    }
}
