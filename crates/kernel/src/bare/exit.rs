//! The end: a verdict to whoever started the machine.

use x86_64::instructions::port::Port;
use x86_64::instructions::{hlt, interrupts};

/// How it ended, as the exit port has it (QEMU then ends with twice the value and 1).
#[derive(Clone, Copy)]
pub enum Verdict {
    /// Everything that was asked for was done.
    Done = 0x10,
    /// A workload failed, or a check of the kernel's own.
    Failed = 0x11,
    /// The command line or the machine was refused.
    Refused = 0x12,
    /// A panic or an exception.
    Panicked = 0x13,
}

/// Ends QEMU by its debug exit port; any other machine halts.
pub fn exit(verdict: Verdict) -> ! {
    // SAFETY: a port that nothing but the debug exit device answers at.
    unsafe { Port::new(0xf4).write(verdict as u32) };
    loop {
        interrupts::disable();
        hlt();
    }
}
