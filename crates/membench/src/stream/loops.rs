//! The loops of a kernel, for each architecture.

use super::Pointers;

/// The loops of any kernel in one instruction set.
macro_rules! isa_loops {
    ($isa:ident, $kernel:expr) => {
        match $kernel {
            Kernel::Read => kernel_loops!(read $isa),
            Kernel::Write => kernel_loops!(write $isa),
            Kernel::NtWrite => kernel_loops!(nt_write $isa),
            Kernel::Copy => kernel_loops!(copy $isa),
            Kernel::NtCopy => kernel_loops!(nt_copy $isa),
            Kernel::Triad => kernel_loops!(triad $isa),
        }
    };
}

/// The loops of one kernel in one instruction set that this machine has.
#[derive(Clone, Copy, Debug)]
pub struct Loops {
    pub(super) sequential: unsafe fn(Pointers, usize),
    pub(super) scattered: unsafe fn(Pointers, &[u64]),
}

impl Loops {
    /// Goes through the first `lines` lines of the arrays.
    ///
    /// # Safety
    /// Each of the kernel's arrays must have that number of lines, and the first array must be
    /// writable if the kernel writes.
    pub unsafe fn sequential(&self, arrays: Pointers, lines: usize) {
        // SAFETY: the caller guarantees the arrays; `arch::loops`, which alone makes loops, has
        // checked that this machine has the instruction set.
        unsafe { (self.sequential)(arrays, lines) };
    }

    /// Goes through the lines at `offsets`, in bytes.
    ///
    /// # Safety
    /// Each of the kernel's arrays must have a line at every offset; otherwise as `sequential`.
    pub unsafe fn scattered(&self, arrays: Pointers, offsets: &[u64]) {
        // SAFETY: the caller guarantees the arrays; `arch::loops`, which alone makes loops, has
        // checked that this machine has the instruction set.
        unsafe { (self.scattered)(arrays, offsets) };
    }
}
