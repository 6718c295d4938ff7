//! The operation of each kernel on its arrays, and the bytes it counts.

use core::fmt;

/// An operation on memory. All arrays of a kernel have the same number of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// Loads every vector of one array.
    Read,
    /// Stores to every vector of one array, through the caches.
    Write,
    /// Stores to every vector of one array, bypassing the caches.
    NtWrite,
    /// `to = from`, with stores through the caches.
    Copy,
    /// `to = from`, with stores that bypass the caches.
    NtCopy,
    /// `to = left + 3.0 * right` on 64-bit floats, with stores through the caches.
    Triad,
}

/// The scalar of [`Kernel::Triad`], and the value that the writing kernels write, as in STREAM.
pub const SCALAR: f64 = 3.0;

impl Kernel {
    /// Every kernel.
    pub const ALL: [Kernel; 6] =
        [Kernel::Read, Kernel::Write, Kernel::NtWrite, Kernel::Copy, Kernel::NtCopy, Kernel::Triad];

    /// Returns the number of arrays it works on.
    pub const fn arrays(self) -> usize {
        match self {
            Kernel::Read | Kernel::Write | Kernel::NtWrite => 1,
            Kernel::Copy | Kernel::NtCopy => 2,
            Kernel::Triad => 3,
        }
    }

    /// Returns the bytes that STREAM counts for `array_bytes` of each array: the bytes that the
    /// program loads and stores.
    pub const fn counted_bytes(self, array_bytes: u64) -> u64 {
        array_bytes * self.arrays() as u64
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
