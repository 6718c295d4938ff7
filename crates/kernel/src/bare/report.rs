//! Results on their way out.

use alloc::string::String;
use core::fmt::Write;

use numalab_kernel::json::Object;
use numalab_kernel::wire::{Encoder, hex};
use numalab_topology::Finding;

use super::serial::Serial;

/// Writes results to the serial port, one after the other.
pub struct Report {
    encoder: Encoder,
    buffer: String,
}

impl Report {
    /// A report with nothing in it yet.
    pub fn new() -> Self {
        Self { encoder: Encoder::default(), buffer: String::with_capacity(32 << 10) }
    }

    /// Sends a result of a kind.
    pub fn send(&mut self, kind: &str, fill: impl FnOnce(&mut Object<'_>)) {
        let mut object = Object::begin(&mut self.buffer, kind);
        fill(&mut object);
        // The serial port takes everything.
        let _ = self.encoder.result(object.end(), &mut Serial);
    }

    /// Sends what is odd or wrong.
    pub fn finding(&mut self, finding: &Finding) {
        self.send("finding", |object| {
            object.display("severity", &finding.severity).text("code", &finding.code);
            object.text("place", &finding.place).text("message", &finding.message);
        });
    }

    /// Sends a piece of a heap dump.
    pub fn heap(&mut self, offset: u64, bytes: &[u8]) {
        self.send("heap", |object| {
            let mut digits = String::new();
            let _ = hex(bytes, &mut digits);
            object.number("offset", offset).text("hex", &digits);
        });
    }

    /// Sends the last line.
    pub fn end(&mut self) {
        let _ = self.encoder.end(&mut Serial);
    }
}

/// Tells people something.
pub fn say(text: core::fmt::Arguments<'_>) {
    let _ = writeln!(Serial, "{text}");
}
