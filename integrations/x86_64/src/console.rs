//! The first serial port, and the port that ends QEMU.

use core::fmt;

use x86_64::instructions::port::Port;
use x86_64::instructions::{hlt, interrupts};

const SERIAL: u16 = 0x3f8;

/// Text output to the port.
pub struct Console;

impl fmt::Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            // SAFETY: the line status register of a port that every PC has; reading changes nothing.
            while unsafe { Port::<u8>::new(SERIAL + 5).read() } & 0x20 == 0 {}
            // SAFETY: the transmitter, which is empty; no memory is touched.
            unsafe { Port::new(SERIAL).write(byte) };
        }
        Ok(())
    }
}

/// Writes a line.
#[macro_export]
macro_rules! say {
    ($($words:tt)*) => {{
        use core::fmt::Write as _;
        // Writing to the console never fails.
        let _ = writeln!($crate::console::Console, $($words)*);
    }};
}

/// Ends QEMU through its debug exit port.
pub fn exit(code: u32) -> ! {
    // SAFETY: only the debug exit device answers at this port.
    unsafe { Port::new(0xf4).write(code) };
    loop {
        interrupts::disable();
        hlt();
    }
}
