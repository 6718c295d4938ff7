//! Reads and writes memory at a system call's arguments through the kernel, so that a bad pointer
//! gives an error instead of a fault.

use std::fs;
use std::os::unix::fs::FileExt as _;

/// Reads up to `most` bytes at an address of this process.
fn bytes(address: u64, most: usize) -> Vec<u8> {
    let mut read = vec![0_u8; most];
    let local = libc::iovec { iov_base: read.as_mut_ptr().cast(), iov_len: most };
    let place = usize::try_from(address).unwrap_or(0);
    let remote = libc::iovec { iov_base: std::ptr::without_provenance_mut(place), iov_len: most };
    // SAFETY: the kernel writes at most `most` bytes to `read`, and checks the other address.
    let count = unsafe {
        libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0)
    };
    // A failed or partial read gives fewer bytes: callers treat them as an unreadable argument.
    read.truncate(usize::try_from(count).unwrap_or(0));
    read
}

/// Returns true if memory can be read and all its bytes are zero.
pub fn is_zero(address: u64, length: u64) -> bool {
    let length = usize::try_from(length).unwrap_or(0);
    let read = bytes(address, length);
    read.len() == length && read.iter().all(|byte| *byte == 0)
}

/// Returns true if the host has allocated a page for this process alone: the page was written, or
/// is part of a huge page that was (`Documentation/admin-guide/mm/pagemap.rst`: bit 63 is set for a
/// present page, and bit 56 for one that is mapped once, which the kernel's page of zeros never
/// is).
pub fn is_allocated(number: u64) -> bool {
    const BITS: u64 = 1 << 63 | 1 << 56;
    let mut entry = [0; 8];
    let read = fs::File::open("/proc/self/pagemap")
        .and_then(|map| map.read_exact_at(&mut entry, 8 * number));
    read.is_ok() && u64::from_ne_bytes(entry) & BITS == BITS
}

/// Reads a 32-bit word.
pub fn word(address: u64) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes(address, 4).try_into().ok()?))
}

/// Reads two 64-bit words, such as a time's seconds and rest.
pub fn words(address: u64) -> Option<[i64; 2]> {
    let read: [u8; 16] = bytes(address, 16).try_into().ok()?;
    let at = |from: usize| read[from..from + 8].try_into().map(i64::from_ne_bytes).ok();
    Some([at(0)?, at(8)?])
}

/// Reads up to `count` 64-bit words.
pub fn pointers(address: u64, count: u64) -> Vec<u64> {
    let read = bytes(address, usize::try_from(8 * count).unwrap_or(0));
    read.chunks_exact(8)
        .filter_map(|word| Some(u64::from_ne_bytes(word.try_into().ok()?)))
        .collect()
}

/// Reads up to `count` 32-bit numbers.
pub fn numbers(address: u64, count: u64) -> Vec<u32> {
    let read = bytes(address, usize::try_from(4 * count).unwrap_or(0));
    read.chunks_exact(4)
        .filter_map(|word| Some(u32::from_ne_bytes(word.try_into().ok()?)))
        .collect()
}

/// Reads the six arguments of a system call.
pub fn arguments(address: u64) -> Option<[u64; 6]> {
    pointers(address, 6).try_into().ok()
}

/// Writes bytes where the program may write them.
pub fn write(address: u64, bytes: &[u8]) {
    let local = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let place = usize::try_from(address).unwrap_or(0);
    let remote =
        libc::iovec { iov_base: std::ptr::without_provenance_mut(place), iov_len: bytes.len() };
    // SAFETY: the kernel reads our bytes, and checks the other address.
    unsafe {
        libc::process_vm_writev(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0)
    };
}

/// Writes two 64-bit words.
pub fn write_words(address: u64, words: [i64; 2]) {
    write(address, &words.map(i64::to_ne_bytes).concat());
}

/// Writes a mask of `bytes` bytes with these bits set.
pub fn write_mask(address: u64, bytes: usize, bits: impl Iterator<Item = usize>) {
    let mut mask = vec![0_u8; bytes.min(MOST_MASK_BYTES)];
    for bit in bits.filter(|bit| bit / 8 < bytes.min(MOST_MASK_BYTES)) {
        mask[bit / 8] |= 1 << (bit % 8);
    }
    write(address, &mask);
}

/// Reads a mask of `length` bytes, as far as the kernel reads it.
pub fn mask_bytes(address: u64, length: u64) -> Vec<u8> {
    bytes(address, usize::try_from(length).unwrap_or(0).min(MOST_MASK_BYTES))
}

/// Returns the numbers of the bits set in the bytes of a mask.
pub fn bits_of(mask: &[u8]) -> Vec<usize> {
    let set = |at: &usize| mask[at / 8] >> (at % 8) & 1 == 1;
    (0..mask.len() * 8).filter(set).collect()
}

/// Returns the numbers of the bits set in a mask of `bits` bits.
pub fn mask(address: u64, bits: u64) -> Vec<usize> {
    bits_of(&mask_bytes(address, bits.div_ceil(8)))
}

/// Maximum length of a cpu mask that the kernel accepts: 8,192 cpus.
const MOST_MASK_BYTES: usize = 1 << 10;
/// Maximum length of a string that Linux accepts: 32 pages (`MAX_ARG_STRLEN`).
const MOST_STRING_BYTES: usize = 128 << 10;
/// `PATH_MAX`.
const MOST_PATH_BYTES: usize = 4 << 10;

/// Reads a path up to its NUL. A single read never crosses a page boundary, because the next page
/// may be unmapped.
pub fn path(address: u64) -> String {
    let to_page_end = MOST_PATH_BYTES - usize::try_from(address % 4096).unwrap_or(0);
    let read = bytes(address, to_page_end);
    let end = read.iter().position(|byte| *byte == 0).unwrap_or(read.len());
    String::from_utf8_lossy(&read[..end]).into_owned()
}

/// Reads up to `most` strings of a null-terminated list, as execve(2) takes it.
pub fn strings(address: u64, most: usize) -> Vec<Vec<u8>> {
    let pointer = |at: usize| -> Option<u64> {
        let read = bytes(address.wrapping_add(8 * at as u64), 8);
        Some(u64::from_ne_bytes(read.try_into().ok()?)).filter(|pointer| *pointer != 0)
    };
    (0..most).map_while(pointer).map(string).collect()
}

/// Reads a string of any length, up to its NUL.
fn string(address: u64) -> Vec<u8> {
    let mut read = Vec::new();
    loop {
        let at = address.wrapping_add(read.len() as u64);
        let to_page_end = MOST_PATH_BYTES - usize::try_from(at % 4096).unwrap_or(0);
        let more = bytes(at, to_page_end);
        if let Some(end) = more.iter().position(|byte| *byte == 0) {
            read.extend(&more[..end]);
            return read;
        }
        if more.is_empty() || read.len() > MOST_STRING_BYTES {
            return read;
        }
        read.extend(more);
    }
}

/// Returns the path of an open descriptor.
pub fn file(descriptor: u64) -> Option<String> {
    let path = fs::read_link(format!("/proc/self/fd/{descriptor}")).ok()?;
    Some(path.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_the_numbers_of_its_bits_and_a_bad_pointer_has_none() {
        let words = [0x8000_0000_0000_0005_u64, 2];
        assert_eq!(mask((&raw const words) as u64, 128), [0, 2, 63, 65]);
        assert_eq!(mask((&raw const words) as u64, 4), [0, 2]);
        assert!(mask(8, 64).is_empty());
    }

    #[test]
    fn a_page_is_allocated_by_a_store_and_stays_zero_if_zeros_are_stored() {
        // SAFETY: a new mapping, with no address given.
        let block = unsafe {
            let (no_file, access) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, libc::PROT_READ);
            libc::mmap(std::ptr::null_mut(), 8192, access | libc::PROT_WRITE, no_file, -1, 0)
        };
        let number = block.expose_provenance() as u64 / 4096;
        let both = |number| (is_zero(number * 4096, 4096), is_allocated(number));
        assert_eq!(both(number), (true, false));
        // SAFETY: within the mapping.
        unsafe { block.cast::<u8>().write_volatile(0) };
        assert_eq!(both(number), (true, true));
        write(number * 4096 + 9, &[1]);
        assert!(!is_zero(number * 4096, 4096) && !is_zero(8, 1));
        // SAFETY: the mapping made above.
        unsafe { libc::munmap(block, 8192) };
    }

    #[test]
    fn a_mask_is_written_as_it_is_read_and_no_longer_than_asked_for() {
        let words = Box::leak(Box::new([u64::MAX; 2]));
        let address = words.as_ptr() as u64;
        write_mask(address, 8, [0, 2, 63, 65].into_iter());
        assert_eq!(mask(address, 64), [0, 2, 63]);
        assert_eq!(words[1], u64::MAX);
    }

    #[test]
    fn reads_and_writes_words_and_survives_bad_pointers() {
        let place = Box::leak(Box::new([3_i64, 4]));
        let address = place.as_ptr() as u64;
        assert_eq!((words(address), word(address)), (Some([3, 4]), Some(3)));
        write_words(address, [5, -6]);
        assert_eq!(words(address), Some([5, -6]));
        write_words(8, [1, 1]);
        assert_eq!((words(8), word(8)), (None, None));
    }

    #[test]
    fn a_list_of_strings_ends_at_null() {
        let long = vec![b'x'; 9000];
        let long = std::ffi::CString::new(long).unwrap();
        let list = [c"ls".as_ptr(), long.as_ptr(), std::ptr::null(), c"no".as_ptr()];
        let read = strings(list.as_ptr() as u64, 9);
        assert_eq!(read.iter().map(Vec::len).collect::<Vec<_>>(), [2, 9000]);
        assert!(strings(8, 9).is_empty());
    }

    #[test]
    fn a_path_ends_at_its_nul() {
        let text = c"/bin/true";
        assert_eq!(path(text.as_ptr() as u64), "/bin/true");
        assert_eq!(path(8), "");
    }
}
