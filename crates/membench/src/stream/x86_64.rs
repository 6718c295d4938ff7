//! The loops of each kernel in SSE2, AVX2 and AVX-512.
//!
//! They are in assembly, because a compiler would turn a copy into a call of `memcpy`, which then
//! decides on the stores.

use super::kernel::SCALAR;
use super::loops::Loops;
use super::{Kernel, Pointers};
use crate::isa::Isa;
use crate::line::Line;
use core::arch::asm;

/// The instructions of a kernel for one vector: number `$n` of the registers named `$reg`, at an
/// address in each array. Register 15 has the scalar. `$v` is the prefix of the mnemonics.
macro_rules! vector {
    (read $v:literal $reg:literal $n:literal $to:expr, $left:expr, $right:expr) => {
        concat!($v, "movaps ", $reg, $n, ", [", $to, "]\n")
    };
    (write $v:literal $reg:literal $n:literal $to:expr, $left:expr, $right:expr) => {
        concat!($v, "movaps [", $to, "], ", $reg, "15\n")
    };
    (nt_write $v:literal $reg:literal $n:literal $to:expr, $left:expr, $right:expr) => {
        concat!($v, "movntps [", $to, "], ", $reg, "15\n")
    };
    (copy $v:literal $reg:literal $n:literal $to:expr, $left:expr, $right:expr) => {
        concat!(
            $v, "movaps ", $reg, $n, ", [", $left, "]\n", $v, "movaps [", $to, "], ", $reg, $n,
            "\n",
        )
    };
    (nt_copy $v:literal $reg:literal $n:literal $to:expr, $left:expr, $right:expr) => {
        concat!(
            $v,
            "movaps ",
            $reg,
            $n,
            ", [",
            $left,
            "]\n",
            $v,
            "movntps [",
            $to,
            "], ",
            $reg,
            $n,
            "\n",
        )
    };
    (triad "" $reg:literal $n:literal $to:expr, $left:expr, $right:expr) => {
        concat!(
            "movapd ", $reg, $n, ", [", $right, "]\n", "mulpd ", $reg, $n, ", ", $reg, "15\n",
            "addpd ", $reg, $n, ", [", $left, "]\n", "movapd [", $to, "], ", $reg, $n, "\n",
        )
    };
    (triad "v" $reg:literal $n:literal $to:expr, $left:expr, $right:expr) => {
        concat!(
            "vmulpd ",
            $reg,
            $n,
            ", ",
            $reg,
            "15, [",
            $right,
            "]\n",
            "vaddpd ",
            $reg,
            $n,
            ", ",
            $reg,
            $n,
            ", [",
            $left,
            "]\n",
            "vmovapd [",
            $to,
            "], ",
            $reg,
            $n,
            "\n",
        )
    };
}

/// The instructions of a kernel for one line, in an instruction set's vectors.
macro_rules! line {
    ($kernel:ident sse2 $to:expr, $left:expr, $right:expr) => {
        concat!(
            vector!($kernel "" "xmm" 0 $to, $left, $right),
            vector!($kernel "" "xmm" 1
                concat!($to, "+16"), concat!($left, "+16"), concat!($right, "+16")),
            vector!($kernel "" "xmm" 2
                concat!($to, "+32"), concat!($left, "+32"), concat!($right, "+32")),
            vector!($kernel "" "xmm" 3
                concat!($to, "+48"), concat!($left, "+48"), concat!($right, "+48")),
        )
    };
    ($kernel:ident avx2 $to:expr, $left:expr, $right:expr) => {
        concat!(
            vector!($kernel "v" "ymm" 0 $to, $left, $right),
            vector!($kernel "v" "ymm" 1
                concat!($to, "+32"), concat!($left, "+32"), concat!($right, "+32")),
        )
    };
    ($kernel:ident avx512 $to:expr, $left:expr, $right:expr) => {
        vector!($kernel "v" "zmm" 0 $to, $left, $right)
    };
}

/// Copies the scalar from the low half of xmm15 into all of register 15.
macro_rules! fill {
    (sse2) => {
        "unpcklpd xmm15, xmm15"
    };
    (avx2) => {
        "vbroadcastsd ymm15, xmm15"
    };
    (avx512) => {
        "vbroadcastsd zmm15, xmm15"
    };
}

/// Leaves the wide registers in the state in which SSE code is fast.
macro_rules! leave {
    (sse2) => {
        ""
    };
    ($wide:ident) => {
        "vzeroupper"
    };
}

/// The second line of a round, which only reads have. More lines, or two lines of stores, gain
/// nothing in memory: prefetchers that are indexed by an instruction's address work worse with more
/// instructions.
macro_rules! second_line {
    (read $isa:ident) => {
        line!(read $isa "{to}+{at}+64", "{left}+{at}+64", "{right}+{at}+64")
    };
    ($other:ident $isa:ident) => {
        ""
    };
}

macro_rules! lines_per_round {
    (read) => {
        2
    };
    ($other:ident) => {
        1
    };
}

/// The two loops of one kernel in one instruction set.
///
/// The vector registers that `vzeroupper` changes, which are all those used and more, are declared as
/// clobbered by their lowest 16 bytes, which covers the whole register.
macro_rules! kernel_loops {
    ($kernel:ident $isa:ident) => {{
        /// # Safety
        /// As `Loops::sequential`; the machine must have the instruction set.
        unsafe fn sequential(arrays: Pointers, lines: usize) {
            // SAFETY: the caller guarantees that the arrays have that number of lines.
            let end = unsafe { arrays.at(lines) };
            // SAFETY: the caller guarantees the arrays and the instruction set. `at` counts up to 0
            // at the arrays' end, a line at a time until the rest consists of whole rounds.
            unsafe {
                asm!(
                    "movq xmm15, {scalar}",
                    fill!($isa),
                    "test {at}, {at}",
                    "jz 3f",
                    "test {at}, {odd_bytes}",
                    "jz 2f",
                    line!($kernel $isa "{to}+{at}", "{left}+{at}", "{right}+{at}"),
                    "add {at}, 64",
                    "jz 3f",
                    ".p2align 5",
                    "2:",
                    line!($kernel $isa "{to}+{at}", "{left}+{at}", "{right}+{at}"),
                    second_line!($kernel $isa),
                    "add {at}, {round_bytes}",
                    "jnz 2b",
                    "3:",
                    leave!($isa),
                    "/* {to} {left} {right} */",
                    to = in(reg) end.to,
                    left = in(reg) end.left,
                    right = in(reg) end.right,
                    at = inout(reg) (lines * Line::SIZE_BYTES).wrapping_neg() => _,
                    round_bytes = const lines_per_round!($kernel) * Line::SIZE_BYTES,
                    odd_bytes = const (lines_per_round!($kernel) - 1) * Line::SIZE_BYTES,
                    scalar = in(reg) SCALAR.to_bits(),
                    out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                    out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                    out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                    out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                    options(nostack),
                );
            }
        }

        /// # Safety
        /// As `Loops::scattered`; the machine must have the instruction set.
        unsafe fn scattered(arrays: Pointers, offsets: &[u64]) {
            // SAFETY: the caller guarantees the arrays and the instruction set; only offsets in the
            // slice are read.
            unsafe {
                asm!(
                    "movq xmm15, {scalar}",
                    fill!($isa),
                    "test {count}, {count}",
                    "jz 3f",
                    ".p2align 5",
                    "2:",
                    "mov {at}, qword ptr [{offsets}]",
                    line!($kernel $isa "{to}+{at}", "{left}+{at}", "{right}+{at}"),
                    "add {offsets}, 8",
                    "dec {count}",
                    "jnz 2b",
                    "3:",
                    leave!($isa),
                    "/* {to} {left} {right} */",
                    to = in(reg) arrays.to,
                    left = in(reg) arrays.left,
                    right = in(reg) arrays.right,
                    offsets = inout(reg) offsets.as_ptr() => _,
                    count = inout(reg) offsets.len() => _,
                    at = out(reg) _,
                    scalar = in(reg) SCALAR.to_bits(),
                    out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                    out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                    out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                    out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                    options(nostack),
                );
            }
        }

        Loops { sequential, scattered }
    }};
}

/// Returns the loops of `kernel` in `isa`; `None` if this machine lacks it.
pub fn loops(kernel: Kernel, isa: Isa) -> Option<Loops> {
    if !isa.is_available() {
        return None;
    }
    match isa {
        Isa::Sse2 => Some(isa_loops!(sse2, kernel)),
        Isa::Avx2 => Some(isa_loops!(avx2, kernel)),
        Isa::Avx512 => Some(isa_loops!(avx512, kernel)),
        Isa::Neon | Isa::Sve => None,
    }
}

/// Waits until the stores of `kernel` that bypass the caches have been issued to memory, so that
/// they are included in the measured time.
pub fn finish(kernel: Kernel) {
    match kernel {
        Kernel::NtWrite | Kernel::NtCopy => {
            // SAFETY: orders stores and accesses nothing.
            unsafe { asm!("sfence", options(nostack, preserves_flags)) };
        }
        Kernel::Read | Kernel::Write | Kernel::Copy | Kernel::Triad => {}
    }
}
