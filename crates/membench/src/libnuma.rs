//! What programs that use libnuma and numalab's emulator agree on. QEMU's user mode knows no call about
//! NUMA policy, so that libnuma asks the emulator in place of the kernel.

/// A system call that Linux does not have: what the call of a number gives, whose six arguments are at an
/// address, is to be written to another one.
pub const ASKS: i64 = 0x4e55_4d41;
/// What a program has in its first bytes that uses libnuma, by itself or if it finds it. Linkers put the
/// names of libraries there.
const NAME: &[u8] = b"libnuma.so";
/// How many bytes that may take.
pub const FIRST_BYTES: u64 = 1 << 20;

/// Whether a program uses libnuma, by its first bytes ([`FIRST_BYTES`]).
#[must_use]
pub fn is_used_by(first_bytes: &[u8]) -> bool {
    first_bytes.windows(NAME.len()).any(|part| part == NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_names_the_libraries_that_it_uses() {
        assert!(is_used_by(b"\x7fELF\0libc.so.6\0libnuma.so.1\0"));
        assert!(!is_used_by(b"\x7fELF\0libc.so.6\0libnum"));
    }
}
