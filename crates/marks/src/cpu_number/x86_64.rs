//! The number in the time stamp counter's auxiliary register.

use core::arch::asm;
use core::arch::x86_64::__cpuid;

/// Returns true if [`cpu_number`] is available: RDTSCP exists (Intel SDM volume 2, CPUID).
pub fn has_cpu_number() -> bool {
    __cpuid(0x8000_0000).eax >= 0x8000_0001 && __cpuid(0x8000_0001).edx & (1 << 27) != 0
}

/// Returns the number of the cpu that this runs on, if the system keeps it in the time stamp
/// counter's auxiliary register: Linux does, in the lower 12 bits (`vdso_encode_cpunode`).
///
/// # Safety
/// [`has_cpu_number`] is true.
pub unsafe fn cpu_number() -> u32 {
    let auxiliary: u32;
    // SAFETY: RDTSCP exists, by the caller's promise; it reads registers.
    unsafe {
        asm!(
            "rdtscp",
            out("rax") _,
            out("rdx") _,
            out("ecx") auxiliary,
            options(nostack, nomem, preserves_flags),
        );
    }
    auxiliary & 0xfff
}
