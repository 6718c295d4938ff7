//! The loops of each kernel in NEON, and in SVE if the crate is built for it.
//!
//! They are in assembly, because a compiler would turn a copy into a call of `memcpy`, which then
//! decides on the stores.

use super::kernel::SCALAR;
use super::loops::Loops;
use super::{Kernel, Pointers};
use crate::isa::Isa;
use core::arch::asm;

/// The NEON instructions of a kernel for one line, from its address in each array; v31 has the
/// scalar.
///
/// `stnp` is the architecture's hint for a store that bypasses the caches, which a cpu may ignore.
#[rustfmt::skip]
macro_rules! neon_line {
    (read $to:literal $left:literal $right:literal) => {
        concat!("ldp q0, q1, [", $to, "]\n", "ldp q2, q3, [", $to, ", #32]\n")
    };
    (write $to:literal $left:literal $right:literal) => {
        concat!("stp q31, q31, [", $to, "]\n", "stp q31, q31, [", $to, ", #32]\n")
    };
    (nt_write $to:literal $left:literal $right:literal) => {
        concat!("stnp q31, q31, [", $to, "]\n", "stnp q31, q31, [", $to, ", #32]\n")
    };
    (copy $to:literal $left:literal $right:literal) => {
        concat!(
            "ldp q0, q1, [", $left, "]\n", "ldp q2, q3, [", $left, ", #32]\n",
            "stp q0, q1, [", $to, "]\n", "stp q2, q3, [", $to, ", #32]\n",
        )
    };
    (nt_copy $to:literal $left:literal $right:literal) => {
        concat!(
            "ldp q0, q1, [", $left, "]\n", "ldp q2, q3, [", $left, ", #32]\n",
            "stnp q0, q1, [", $to, "]\n", "stnp q2, q3, [", $to, ", #32]\n",
        )
    };
    (triad $to:literal $left:literal $right:literal) => {
        concat!(
            "ldp q0, q1, [", $right, "]\n", "ldp q2, q3, [", $right, ", #32]\n",
            "ldp q4, q5, [", $left, "]\n", "ldp q6, q7, [", $left, ", #32]\n",
            "fmul v0.2d, v0.2d, v31.2d\n", "fmul v1.2d, v1.2d, v31.2d\n",
            "fmul v2.2d, v2.2d, v31.2d\n", "fmul v3.2d, v3.2d, v31.2d\n",
            "fadd v0.2d, v0.2d, v4.2d\n", "fadd v1.2d, v1.2d, v5.2d\n",
            "fadd v2.2d, v2.2d, v6.2d\n", "fadd v3.2d, v3.2d, v7.2d\n",
            "stp q0, q1, [", $to, "]\n", "stp q2, q3, [", $to, ", #32]\n",
        )
    };
}

/// The SVE instructions of a kernel for one vector, at index `{{word}}` of each array, for the
/// words selected by predicate p0; z31 has the scalar.
#[cfg(target_feature = "sve")]
#[rustfmt::skip]
macro_rules! sve_vector {
    (read) => { "ld1d {{z0.d}}, p0/z, [{to}, {word}, lsl #3]" };
    (write) => { "st1d {{z31.d}}, p0, [{to}, {word}, lsl #3]" };
    (nt_write) => { "stnt1d {{z31.d}}, p0, [{to}, {word}, lsl #3]" };
    (copy) => {
        concat!(
            "ld1d {{z0.d}}, p0/z, [{left}, {word}, lsl #3]\n",
            "st1d {{z0.d}}, p0, [{to}, {word}, lsl #3]",
        )
    };
    (nt_copy) => {
        concat!(
            "ld1d {{z0.d}}, p0/z, [{left}, {word}, lsl #3]\n",
            "stnt1d {{z0.d}}, p0, [{to}, {word}, lsl #3]",
        )
    };
    (triad) => {
        concat!(
            "ld1d {{z0.d}}, p0/z, [{right}, {word}, lsl #3]\n",
            "ld1d {{z1.d}}, p0/z, [{left}, {word}, lsl #3]\n",
            "fmul z0.d, z0.d, z31.d\n",
            "fadd z0.d, z0.d, z1.d\n",
            "st1d {{z0.d}}, p0, [{to}, {word}, lsl #3]",
        )
    };
}

/// The two loops of one kernel in one instruction set.
macro_rules! kernel_loops {
    ($kernel:ident neon) => {{
        /// # Safety
        /// As `Loops::sequential`.
        unsafe fn sequential(arrays: Pointers, lines: usize) {
            // SAFETY: the caller guarantees the arrays.
            unsafe {
                asm!(
                    "dup v31.2d, {scalar}",
                    "cbz {lines}, 3f",
                    ".p2align 5",
                    "2:",
                    neon_line!($kernel "{to}" "{left}" "{right}"),
                    "add {to}, {to}, #64",
                    "add {left}, {left}, #64",
                    "add {right}, {right}, #64",
                    "subs {lines}, {lines}, #1",
                    "b.ne 2b",
                    "3:",
                    to = inout(reg) arrays.to => _,
                    left = inout(reg) arrays.left => _,
                    right = inout(reg) arrays.right => _,
                    lines = inout(reg) lines => _,
                    scalar = in(reg) SCALAR.to_bits(),
                    out("v0") _, out("v1") _, out("v2") _, out("v3") _,
                    out("v4") _, out("v5") _, out("v6") _, out("v7") _,
                    out("v31") _,
                    options(nostack),
                );
            }
        }

        /// # Safety
        /// As `Loops::scattered`.
        unsafe fn scattered(arrays: Pointers, offsets: &[u64]) {
            // SAFETY: the caller guarantees the arrays; only offsets in the slice are read.
            unsafe {
                asm!(
                    "dup v31.2d, {scalar}",
                    "cbz {count}, 3f",
                    ".p2align 5",
                    "2:",
                    "ldr {at}, [{offsets}], #8",
                    "add {to}, {first_to}, {at}",
                    "add {left}, {first_left}, {at}",
                    "add {right}, {first_right}, {at}",
                    neon_line!($kernel "{to}" "{left}" "{right}"),
                    "subs {count}, {count}, #1",
                    "b.ne 2b",
                    "3:",
                    first_to = in(reg) arrays.to,
                    first_left = in(reg) arrays.left,
                    first_right = in(reg) arrays.right,
                    to = out(reg) _,
                    left = out(reg) _,
                    right = out(reg) _,
                    offsets = inout(reg) offsets.as_ptr() => _,
                    count = inout(reg) offsets.len() => _,
                    at = out(reg) _,
                    scalar = in(reg) SCALAR.to_bits(),
                    out("v0") _, out("v1") _, out("v2") _, out("v3") _,
                    out("v4") _, out("v5") _, out("v6") _, out("v7") _,
                    out("v31") _,
                    options(nostack),
                );
            }
        }

        Loops { sequential, scattered }
    }};
    ($kernel:ident sve) => {{
        /// # Safety
        /// As `Loops::sequential`; the machine must have SVE.
        unsafe fn sequential(arrays: Pointers, lines: usize) {
            // SAFETY: the caller guarantees the arrays and the instruction set; the predicate
            // selects no word after `end`.
            unsafe {
                asm!(
                    "mov z31.d, {scalar}",
                    "mov {word}, xzr",
                    "whilelo p0.d, {word}, {end}",
                    "b.none 3f",
                    ".p2align 5",
                    "2:",
                    sve_vector!($kernel),
                    "incd {word}",
                    "whilelo p0.d, {word}, {end}",
                    "b.any 2b",
                    "3:",
                    "/* {to} {left} {right} */",
                    to = in(reg) arrays.to,
                    left = in(reg) arrays.left,
                    right = in(reg) arrays.right,
                    word = out(reg) _,
                    end = in(reg) lines * 8,
                    scalar = in(reg) SCALAR.to_bits(),
                    out("v0") _, out("v1") _, out("v31") _, out("p0") _,
                    options(nostack),
                );
            }
        }

        /// # Safety
        /// As `Loops::scattered`; the machine must have SVE.
        unsafe fn scattered(arrays: Pointers, offsets: &[u64]) {
            // SAFETY: the caller guarantees the arrays and the instruction set; of the offsets,
            // only those in the slice are read, and from each the eight words of a line.
            unsafe {
                asm!(
                    "mov z31.d, {scalar}",
                    "cbz {count}, 4f",
                    ".p2align 5",
                    "2:",
                    "ldr {word}, [{offsets}], #8",
                    "lsr {word}, {word}, #3",
                    "add {end}, {word}, #8",
                    "whilelo p0.d, {word}, {end}",
                    "3:",
                    sve_vector!($kernel),
                    "incd {word}",
                    "whilelo p0.d, {word}, {end}",
                    "b.any 3b",
                    "subs {count}, {count}, #1",
                    "b.ne 2b",
                    "4:",
                    "/* {to} {left} {right} */",
                    to = in(reg) arrays.to,
                    left = in(reg) arrays.left,
                    right = in(reg) arrays.right,
                    offsets = inout(reg) offsets.as_ptr() => _,
                    count = inout(reg) offsets.len() => _,
                    word = out(reg) _,
                    end = out(reg) _,
                    scalar = in(reg) SCALAR.to_bits(),
                    out("v0") _, out("v1") _, out("v31") _, out("p0") _,
                    options(nostack),
                );
            }
        }

        Loops { sequential, scattered }
    }};
}

/// Returns the loops of `kernel` in `isa`; `None` if this machine lacks it.
pub fn loops(kernel: Kernel, isa: Isa) -> Option<Loops> {
    match isa {
        Isa::Neon => Some(isa_loops!(neon, kernel)),
        #[cfg(target_feature = "sve")]
        Isa::Sve => Some(isa_loops!(sve, kernel)),
        _ => None,
    }
}

/// Waits until the stores of `kernel` that bypass the caches have been issued to memory, so that
/// they are included in the measured time.
pub fn finish(kernel: Kernel) {
    match kernel {
        Kernel::NtWrite | Kernel::NtCopy => {
            // SAFETY: orders stores and accesses nothing.
            unsafe { asm!("dmb ishst", options(nostack, preserves_flags)) };
        }
        Kernel::Read | Kernel::Write | Kernel::Copy | Kernel::Triad => {}
    }
}
