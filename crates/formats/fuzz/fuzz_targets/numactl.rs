//! Any text gives numactl output or an error; a machine that is written again reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use numalab_formats::numactl;

fuzz_target!(|text: &str| {
    if let Ok(reading) = numactl::read(text) {
        let written = numactl::write(&reading.value);
        let again = numactl::read(&written).expect("our own text");
        assert_eq!(numactl::write(&again.value), written);
    }
});
