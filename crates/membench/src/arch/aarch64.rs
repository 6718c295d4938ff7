//! Operations that need aarch64 instructions.

use core::arch::asm;

/// Follows `loads` pointers from `start`, each load waiting for the last; returns the last pointer
/// loaded.
///
/// Not unrolled: a load takes longer than the loop's two other instructions, which run in parallel
/// with it, and prefetchers that are indexed by a load's address see one load, as in an ordinary
/// program's loop.
///
/// # Safety
/// Every one of the `loads` pointers reached from `start` must be readable and 8-byte aligned.
#[inline(never)]
pub unsafe fn follow(start: usize, loads: u64) -> usize {
    let mut at = start;
    // SAFETY: only reads, and only through pointers that the caller guarantees.
    unsafe {
        asm!(
            "cbz {left}, 3f",
            ".p2align 5",
            "2:",
            "ldr {at}, [{at}]",
            "subs {left}, {left}, #1",
            "b.ne 2b",
            "3:",
            at = inout(reg) at,
            left = inout(reg) loads => _,
            options(nostack, readonly),
        );
    }
    at
}

/// Executes a chain of `adds` dependent additions of a register.
#[inline(never)]
pub fn dependent_adds(adds: u64) {
    // SAFETY: accesses only its own registers.
    unsafe {
        asm!(
            "cbz {blocks}, 3f",
            ".p2align 5",
            "2:",
            ".rept 32",
            "add {sum}, {sum}, {step}",
            ".endr",
            "subs {blocks}, {blocks}, #1",
            "b.ne 2b",
            "3:",
            "cbz {rest}, 5f",
            "4:",
            "add {sum}, {sum}, {step}",
            "subs {rest}, {rest}, #1",
            "b.ne 4b",
            "5:",
            sum = inout(reg) 0_u64 => _,
            step = in(reg) 3_u64,
            blocks = inout(reg) adds / 32 => _,
            rest = inout(reg) adds % 32 => _,
            options(nostack, nomem),
        );
    }
}

/// Returns the generic timer's virtual count, read after all loads before it have finished and
/// before anything after it starts (Arm ARM D12.2: reads of `CNTVCT_EL0` may move unless an ISB
/// holds them).
pub fn timestamp() -> u64 {
    let count: u64;
    // SAFETY: reads a counter. Not `nomem`: memory accesses must not move across it.
    unsafe {
        asm!(
            "dsb ish",
            "isb",
            "mrs {count}, cntvct_el0",
            "isb",
            count = out(reg) count,
            options(nostack, preserves_flags),
        );
    }
    count
}

/// Always returns true: the architecture requires a fixed rate of the generic timer (Arm ARM
/// D12.1).
pub fn timestamp_is_invariant() -> bool {
    true
}
