//! The end: a verdict for the program that started the machine.

use x86_64::instructions::port::Port;
use x86_64::instructions::{hlt, interrupts};

/// The result of a boot, as written to the exit port (QEMU then exits with twice the value plus 1).
#[derive(Clone, Copy)]
pub enum Verdict {
    /// All requested work was done.
    Done = 0x10,
    /// A workload, or one of the kernel's own checks, failed.
    Failed = 0x11,
    /// The command line or the machine was refused.
    Refused = 0x12,
    /// A panic or an exception.
    Panicked = 0x13,
}

/// Ends QEMU through its debug exit port; any other machine halts.
pub fn exit(verdict: Verdict) -> ! {
    // SAFETY: only the debug exit device responds at this port.
    unsafe { Port::new(0xf4).write(verdict as u32) };
    loop {
        interrupts::disable();
        hlt();
    }
}
