//! Reads SMBIOS structures from any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use numalab_formats::smbios::{Channels, read};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(slots) = read(bytes) {
        let channels = Channels::of(&slots);
        let _ = (channels.peak_mb_s(), channels.empty(), channels.slow());
    }
});
