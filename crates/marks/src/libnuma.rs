//! The protocol between programs that use libnuma and numalab's emulator. QEMU's user mode does not
//! implement the calls for NUMA policy, so libnuma calls the emulator in place of the kernel.

/// The number of a system call that Linux does not have. It asks for the result of a call, given by
/// its number, with six arguments at one address, to be written to another address.
pub const ASKS: i64 = 0x4e55_4d41;
/// A name in the first bytes of a program that uses libnuma, either linked or loaded on demand.
/// Linkers put the names of libraries there.
const NAME: &[u8] = b"libnuma.so";
/// The number of first bytes to search.
pub const FIRST_BYTES: u64 = 1 << 20;

/// Returns true if a program uses libnuma, judged by its first bytes ([`FIRST_BYTES`]).
pub fn is_used_by(first_bytes: &[u8]) -> bool {
    first_bytes.windows(NAME.len()).any(|part| part == NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_contains_the_names_of_its_libraries() {
        assert!(is_used_by(b"\x7fELF\0libc.so.6\0libnuma.so.1\0"));
        assert!(!is_used_by(b"\x7fELF\0libc.so.6\0libnum"));
    }
}
