//! Operations that need x86-64 instructions.

use core::arch::asm;
use core::arch::x86_64::{__cpuid, CpuidResult};

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
    if cfg!(miri) {
        // Miri cannot execute assembly; it checks the same reads here.
        for _ in 0..loads {
            // SAFETY: the caller guarantees every pointer reached.
            at = unsafe { core::ptr::with_exposed_provenance::<usize>(at).read_volatile() };
        }
        return at;
    }
    // SAFETY: only reads, and only through pointers that the caller guarantees.
    unsafe {
        asm!(
            "test {left}, {left}",
            "jz 3f",
            ".p2align 5",
            "2:",
            "mov {at}, qword ptr [{at}]",
            "dec {left}",
            "jnz 2b",
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
            "shr {blocks}, 5",
            "jz 3f",
            ".p2align 5",
            "2:",
            ".rept 32",
            "add {sum}, {step}",
            ".endr",
            "dec {blocks}",
            "jnz 2b",
            "3:",
            "and {rest:e}, 31",
            "jz 5f",
            "4:",
            "add {sum}, {step}",
            "dec {rest:e}",
            "jnz 4b",
            "5:",
            sum = inout(reg) 0_u64 => _,
            step = in(reg) 3_u64,
            blocks = inout(reg) adds => _,
            rest = inout(reg) adds => _,
            options(nostack, nomem),
        );
    }
}

/// Returns the time stamp counter, read after everything before has executed and before anything
/// after starts.
///
/// LFENCE on both sides of RDTSC rather than RDTSCP: the same order (Intel SDM volume 2, RDTSC),
/// and also on cpus without RDTSCP, such as QEMU's qemu64. On AMD this needs LFENCE to serialise
/// (`DE_CFG` bit 1), which Linux sets and Zen cores start with.
pub fn timestamp() -> u64 {
    let low: u64;
    let high: u64;
    // SAFETY: reads a counter. Not `nomem`: memory accesses must not move across it.
    unsafe {
        asm!(
            "lfence",
            "rdtsc",
            "lfence",
            out("rax") low,
            out("rdx") high,
            options(nostack, preserves_flags),
        );
    }
    high << 32 | low
}

/// Returns true if the time stamp counter runs at one rate in all power states (AMD APM volume 3,
/// CPUID Fn8000_0007 EDX bit 8; the same in the Intel SDM, volume 3, 17.17.1).
pub fn timestamp_is_invariant() -> bool {
    cpuid(0x8000_0000).eax >= 0x8000_0007 && cpuid(0x8000_0007).edx & (1 << 8) != 0
}

/// Returns one leaf of CPUID, sub-leaf 0.
pub fn cpuid(leaf: u32) -> CpuidResult {
    __cpuid(leaf)
}

/// Returns XCR0, the register state that the operating system saves; 0 without XSAVE (Intel SDM
/// volume 1, 14.3: OSXSAVE is CPUID.1:ECX bit 27).
pub fn vector_state() -> u64 {
    if cpuid(1).ecx & (1 << 27) == 0 {
        return 0;
    }
    let low: u64;
    let high: u64;
    // SAFETY: OSXSAVE, which was just checked, makes XGETBV executable; it reads a register.
    unsafe {
        asm!(
            "xgetbv",
            in("ecx") 0,
            out("rax") low,
            out("rdx") high,
            options(nostack, nomem, preserves_flags),
        );
    }
    high << 32 | low
}
