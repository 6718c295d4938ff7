//! Markers for the memory emulator (`crates/emulator`): NOPs of eight bytes, harmless on
//! hardware, which the emulator sees.

/// Counting and charging begins.
pub fn begin() {
    mark::<1>();
}

/// Counting and charging ends.
pub fn end() {
    mark::<2>();
}

#[cfg(target_arch = "x86_64")]
fn mark<const KIND: u8>() {
    // SAFETY: a NOP and a jump to the next instruction.
    unsafe {
        core::arch::asm!(
            ".byte 0x0f, 0x1f, 0x84, 0x00, {kind}, 0x4d, 0x55, 0x4e",
            "jmp 2f",
            "2:",
            kind = const KIND,
            options(nostack),
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn mark<const KIND: u8>() {}
