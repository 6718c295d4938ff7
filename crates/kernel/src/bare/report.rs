//! Output of results.

use core::fmt::Write;

use numalab_kernel::event::Event;
use numalab_kernel::wire::Encoder;

use super::serial::Serial;

/// Writes results to the serial port, one after another.
#[derive(Default)]
pub struct Report {
    encoder: Encoder,
}

impl Report {
    pub fn send(&mut self, event: &Event) {
        // Events only contain values that JSON can express, and writing to the serial port does not
        // fail.
        if let Ok(json) = serde_json::to_string(event) {
            let _ = self.encoder.result(&json, &mut Serial);
        }
    }

    /// Sends the last line.
    pub fn end(&mut self) {
        let _ = self.encoder.end(&mut Serial);
    }
}

/// Prints text for people.
pub fn say(text: core::fmt::Arguments<'_>) {
    let _ = writeln!(Serial, "{text}");
}
