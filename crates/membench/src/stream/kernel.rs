//! What each kernel does with its arrays, and what it counts.

use core::fmt;

/// A way to go through memory. An array is as many lines as the others of its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// Loads every vector of one array.
    Read,
    /// Stores to every vector of one array, through the caches.
    Write,
    /// Stores to every vector of one array, past the caches.
    NtWrite,
    /// `to = from`, with stores through the caches.
    Copy,
    /// `to = from`, with stores past the caches.
    NtCopy,
    /// `to = left + 3.0 * right` on 64-bit floats, with stores through the caches.
    Triad,
}

/// The scalar of [`Kernel::Triad`], and what the writing kernels write: STREAM's.
pub const SCALAR: f64 = 3.0;

impl Kernel {
    /// Every kernel.
    pub const ALL: [Kernel; 6] =
        [Kernel::Read, Kernel::Write, Kernel::NtWrite, Kernel::Copy, Kernel::NtCopy, Kernel::Triad];

    /// The number of arrays it works on.
    #[must_use]
    pub const fn arrays(self) -> usize {
        match self {
            Kernel::Read | Kernel::Write | Kernel::NtWrite => 1,
            Kernel::Copy | Kernel::NtCopy => 2,
            Kernel::Triad => 3,
        }
    }

    /// The bytes that STREAM counts when `array_bytes` of each array are gone through: what
    /// the program asks for, loaded and stored.
    #[must_use]
    pub const fn counted_bytes(self, array_bytes: u64) -> u64 {
        array_bytes * self.arrays() as u64
    }

    /// The bytes that move when `array_bytes` of each array are gone through in memory: a
    /// store through the caches first reads its line (write-allocate), one past them does not.
    /// Cpus that recognise whole-line stores may do with less.
    #[must_use]
    pub const fn moved_bytes(self, array_bytes: u64) -> u64 {
        let allocated = match self {
            Kernel::Write | Kernel::Copy | Kernel::Triad => array_bytes,
            Kernel::Read | Kernel::NtWrite | Kernel::NtCopy => 0,
        };
        self.counted_bytes(array_bytes) + allocated
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kernel::Read => "read",
            Kernel::Write => "write",
            Kernel::NtWrite => "nt-write",
            Kernel::Copy => "copy",
            Kernel::NtCopy => "nt-copy",
            Kernel::Triad => "triad",
        })
    }
}
