//! The first serial port, a 16550 at 115,200 baud.

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};

use x86_64::instructions::port::Port;

const BASE: u16 = 0x3f8;
/// Number of bytes that the transmitter accepts once it is empty.
const FIFO: usize = 16;
/// Number of reads after which a transmitter that does not become empty is treated as missing.
const PATIENCE: u32 = 10_000_000;

static MISSING: AtomicBool = AtomicBool::new(false);

pub fn init() {
    // Interrupts off; divisor 1; 8 bits, no parity; FIFOs on and empty.
    for (register, value) in [(1, 0), (3, 0x80), (0, 1), (1, 0), (3, 3), (2, 0xc7), (4, 3)] {
        write(register, value);
    }
}

/// The port as a text sink. Only one cpu writes, or one that panics.
pub struct Serial;

impl fmt::Write for Serial {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for bytes in text.as_bytes().chunks(FIFO) {
            wait_until_empty();
            bytes.iter().for_each(|&byte| write(0, byte));
        }
        Ok(())
    }
}

fn wait_until_empty() {
    if MISSING.load(Ordering::Relaxed) {
        return;
    }
    for _ in 0..PATIENCE {
        // SAFETY: reads the line status register of a port that exists on every PC or floats.
        if unsafe { Port::<u8>::new(BASE + 5).read() } & 0x20 != 0 {
            return;
        }
    }
    MISSING.store(true, Ordering::Relaxed);
}

fn write(register: u16, value: u8) {
    // SAFETY: the registers of a serial port; writing them touches no memory.
    unsafe { Port::new(BASE + register).write(value) }
}
