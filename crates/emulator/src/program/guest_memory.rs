//! What a system call's arguments point to, read as the kernel reads it: a bad pointer is an
//! answer and no fault.

use std::fs;

/// Bytes at an address of this process, as many as are there, up to `most`.
fn bytes(address: u64, most: usize) -> Vec<u8> {
    let mut read = vec![0_u8; most];
    let local = libc::iovec { iov_base: read.as_mut_ptr().cast(), iov_len: most };
    let place = usize::try_from(address).unwrap_or(0);
    let remote = libc::iovec { iov_base: std::ptr::without_provenance_mut(place), iov_len: most };
    // SAFETY: the kernel writes at most `most` bytes to `read`, and checks the other address.
    let count = unsafe {
        libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0)
    };
    read.truncate(usize::try_from(count).unwrap_or(0));
    read
}

/// The numbers of the bits that are set in a mask of so many bits.
pub fn mask(address: u64, bits: u64) -> Vec<usize> {
    let most = usize::try_from(bits.div_ceil(8)).unwrap_or(0).min(MOST_MASK_BYTES);
    let words = bytes(address, most);
    let set = |at: &usize| words[at / 8] >> (at % 8) & 1 == 1;
    (0..words.len() * 8).filter(set).collect()
}

/// The longest mask that the kernel takes: of 8,192 cpus.
const MOST_MASK_BYTES: usize = 1 << 10;
/// Longer than any path.
const MOST_PATH_BYTES: usize = 4 << 10;

/// A path, up to its NUL. It is not read past its page, behind which there may be nothing.
pub fn path(address: u64) -> String {
    let to_page_end = MOST_PATH_BYTES - usize::try_from(address % 4096).unwrap_or(0);
    let read = bytes(address, to_page_end);
    let end = read.iter().position(|byte| *byte == 0).unwrap_or(read.len());
    String::from_utf8_lossy(&read[..end]).into_owned()
}

/// The file behind a descriptor.
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
    fn a_path_ends_at_its_nul() {
        let text = c"/bin/true";
        assert_eq!(path(text.as_ptr() as u64), "/bin/true");
        assert_eq!(path(8), "");
    }
}
