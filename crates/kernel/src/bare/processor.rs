//! Features and properties of this cpu.

use core::arch::x86_64::{__cpuid, __cpuid_count};

use x86_64::registers::control::{Cr4, Cr4Flags};
use x86_64::registers::xcontrol::{XCr0, XCr0Flags};

/// Enables the cpu's vector registers at their full width.
pub fn enable_vectors() {
    if __cpuid(1).ecx >> 26 & 1 == 0 {
        return;
    }
    let offered = u64::from(__cpuid_count(0xd, 0).eax);
    let sse = XCr0Flags::X87 | XCr0Flags::SSE;
    let zmm = XCr0Flags::OPMASK | XCr0Flags::ZMM_HI256 | XCr0Flags::HI16_ZMM;
    let has = |flags: XCr0Flags| offered & flags.bits() == flags.bits();
    let mut wanted = sse;
    if has(XCr0Flags::AVX) {
        wanted |= XCr0Flags::AVX;
        if has(zmm) {
            wanted |= zmm;
        }
    }
    // SAFETY: only features that the cpu has, in combinations that it allows; the kernel does not
    // use vector registers in interrupts.
    unsafe {
        Cr4::update(|flags| flags.insert(Cr4Flags::OSXSAVE));
        XCr0::write(wanted);
    }
}

/// Returns true if no hypervisor reports itself.
pub fn is_real_hardware() -> bool {
    __cpuid(1).ecx >> 31 == 0
}
