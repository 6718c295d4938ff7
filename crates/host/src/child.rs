//! Processes that do next to nothing, to time what the kernel does for them: their own size, unlike that of
//! the process that measures, is known.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _};

/// Machine code: stores to a number of pages from [`STORED_AT`] on, then creates a number of children that
/// end at once, waits for each, and ends.
struct Code {
    bytes: &'static [u8],
    /// `e_machine` (elf(5)).
    machine: u16,
    /// The places of both numbers, which are 32-bit words.
    pages_at: usize,
    forks_at: usize,
    /// The word that adds to the address of a page, for a distance of none, and the difference that one
    /// page makes in it.
    adds: (u32, u32),
}

/// `mov $pages,%ebx; mov $0x600000,%edi; 1: dec %ebx; js 2f; movb $1,(%rdi); add $0x1000,%rdi; jmp 1b;
/// 2: mov $forks,%ebx; 3: dec %ebx; js 4f; mov $57,%eax; syscall; test %eax,%eax; jz 4f; mov %eax,%edi;
/// xor %esi,%esi; xor %edx,%edx; xor %r10d,%r10d; mov $61,%eax; syscall; jmp 3b; 4: mov $60,%eax;
/// xor %edi,%edi; syscall`: fork(2), wait4(2) and exit(2).
#[cfg(target_arch = "x86_64")]
const CODE: Code = Code {
    bytes: b"\xbb\0\0\0\0\xbf\0\0\x60\0\xff\xcb\x78\x0c\xc6\x07\x01\x48\x81\xc7\0\x10\0\0\xeb\xf0\
             \xbb\0\0\0\0\xff\xcb\x78\x1d\xb8\x39\0\0\0\x0f\x05\x85\xc0\x74\x12\x89\xc7\x31\xf6\
             \x31\xd2\x45\x31\xd2\xb8\x3d\0\0\0\x0f\x05\xeb\xdf\xb8\x3c\0\0\0\x31\xff\x0f\x05",
    machine: 0x3e,
    pages_at: 1,
    forks_at: 27,
    adds: (0, 0x1000),
};

/// The same program, with clone(2) and `SIGCHLD` in place of fork(2); the numbers of pages and of
/// forks follow the code.
#[cfg(target_arch = "aarch64")]
const CODE: Code = Code {
    bytes: b"\x73\x03\0\x18\x14\x0c\xa0\xd2\x73\x06\0\x71\x84\0\0\x54\x93\x02\0\x39\x94\x06\x40\x91\
             \xfc\xff\xff\x17\xb3\x02\0\x18\x73\x06\0\x71\xe4\x01\0\x54\x20\x02\x80\xd2\x01\0\x80\xd2\
             \x02\0\x80\xd2\x03\0\x80\xd2\x04\0\x80\xd2\x88\x1b\x80\xd2\x01\0\0\xd4\xe0\0\0\xb4\
             \x01\0\x80\xd2\x02\0\x80\xd2\x03\0\x80\xd2\x88\x20\x80\xd2\x01\0\0\xd4\xf1\xff\xff\x17\
             \0\0\x80\xd2\xa8\x0b\x80\xd2\x01\0\0\xd4\0\0\0\0\0\0\0\0",
    machine: 0xb7,
    pages_at: 108,
    forks_at: 112,
    adds: (0x9140_0294, 0x400),
};

/// The place of that word in both.
const ADDS_AT: usize = 20;

/// The addresses of the code and of the memory that is stored to, and the sizes of ELF's headers.
const LOADED_AT: u64 = 0x40_0000;
const STORED_AT: u64 = 0x60_0000;
const HEADER_BYTES: u16 = 64;
const SEGMENT_BYTES: u16 = 56;
const PAGE_BYTES: u64 = 4 << 10;
/// Segments are aligned to the largest base page.
const ALIGNMENT: u64 = 64 << 10;
/// The distance of pages in separate mappings, in pages: with less, the kernel would join some.
const APART: u32 = 32;

/// The size of a small program: what it does before it ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct SmallSize {
    /// Pages of 4 KiB that it stores to.
    pub pages: u16,
    /// True if each of them is in a separate mapping.
    pub are_apart: bool,
    /// Children that end at once.
    pub forks: u32,
}

/// A program in memory that stores to pages, creates children that end at once, and ends.
#[derive(Debug)]
pub struct SmallProgram {
    path: CString,
    /// The program is executed by its descriptor.
    _file: File,
}

impl SmallProgram {
    /// Writes a program of this size to a file in memory.
    ///
    /// # Errors
    /// Those of memfd_create(2) and write(2).
    pub fn new(size: SmallSize) -> io::Result<Self> {
        // SAFETY: the name is a C string; a valid descriptor is ours alone.
        let mut file = unsafe {
            let made = libc::memfd_create(c"small".as_ptr(), libc::MFD_CLOEXEC);
            if made < 0 {
                return Err(io::Error::last_os_error());
            }
            File::from_raw_fd(made)
        };
        file.write_all(&small(size))?;
        let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        Ok(Self { path, _file: file })
    }

    /// Runs it in a new process, and waits for its end.
    ///
    /// # Errors
    /// Those of posix_spawn(3) and waitpid(2); an error without a number if the program fails.
    pub fn run(&self) -> io::Result<()> {
        let (mut child, mut status) = (0, 0);
        let mut none = [std::ptr::null_mut()];
        let (path, none) = (self.path.as_ptr(), none.as_mut_ptr());
        let default = std::ptr::null();
        // SAFETY: the path is a C string, `none` an empty list, and `child` valid for a write.
        let error =
            unsafe { libc::posix_spawn(&raw mut child, path, default, default.cast(), none, none) };
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        // SAFETY: `status` is valid for a write.
        while unsafe { libc::waitpid(child, &raw mut status, 0) } < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        match status {
            0 => Ok(()),
            _ => Err(io::Error::other(format!("the program ended with status {status:#x}"))),
        }
    }
}

/// Returns an ELF file of [`CODE`]: a header, a segment for the code and one for each mapping.
fn small(SmallSize { pages, are_apart, forks }: SmallSize) -> Vec<u8> {
    let (mappings, pages_each) = if are_apart { (pages, 1) } else { (1, pages.max(1)) };
    let segments = 1 + mappings;
    let offset = u64::from(HEADER_BYTES) + u64::from(segments) * u64::from(SEGMENT_BYTES);
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    // `ET_EXEC`, version 1; the entry, the place of the segments, and no sections.
    file.extend([2_u16, CODE.machine].into_iter().flat_map(u16::to_le_bytes));
    file.extend(1_u32.to_le_bytes());
    file.extend(
        [LOADED_AT + offset, HEADER_BYTES.into(), 0].into_iter().flat_map(u64::to_le_bytes),
    );
    file.extend(0_u32.to_le_bytes());
    let sizes = [HEADER_BYTES, SEGMENT_BYTES, segments, 0, 0, 0];
    file.extend(sizes.into_iter().flat_map(u16::to_le_bytes));
    // `PT_LOAD`: readable and executable with the whole file, then readable and writable with none of it.
    let bytes = offset + CODE.bytes.len() as u64;
    let stored = (0..u64::from(mappings)).map(|number| {
        let at = STORED_AT + number * u64::from(APART) * PAGE_BYTES;
        (6, at, [0, u64::from(pages_each) * PAGE_BYTES])
    });
    for (flags, at, [in_file, in_memory]) in
        std::iter::once((5, LOADED_AT, [bytes; 2])).chain(stored)
    {
        file.extend([1_u32, flags].into_iter().flat_map(u32::to_le_bytes));
        let segment = [0, at, at, in_file, in_memory, ALIGNMENT];
        file.extend(segment.into_iter().flat_map(u64::to_le_bytes));
    }
    let mut code = CODE.bytes.to_vec();
    let (adds, each) = CODE.adds;
    let adds = adds + each * if are_apart { APART } else { 1 };
    let words = [(CODE.pages_at, pages.into()), (CODE.forks_at, forks), (ADDS_AT, adds)];
    for (at, number) in words {
        code[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }
    file.extend(code);
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syscall::children_usage;

    #[test]
    fn a_small_program_touches_its_pages_and_creates_its_children() {
        SmallProgram::new(SmallSize::default()).unwrap().run().unwrap();
        let faults = |pages, are_apart, forks| {
            let before = children_usage().ru_minflt;
            SmallProgram::new(SmallSize { pages, are_apart, forks }).unwrap().run().unwrap();
            children_usage().ru_minflt - before
        };
        // Other tests may add theirs.
        assert!(faults(300, false, 0) >= 300 || cfg!(target_arch = "aarch64"));
        assert!(faults(300, true, 0) >= 300 || cfg!(target_arch = "aarch64"));
        assert!(faults(0, false, 20) >= 20, "each child has to map its code");
    }

    #[test]
    fn a_program_that_cannot_be_executed_is_an_error() {
        let program = SmallProgram {
            path: c"/proc/self/fd".into(),
            ..SmallProgram::new(SmallSize::default()).unwrap()
        };
        assert!(program.run().is_err());
    }
}
