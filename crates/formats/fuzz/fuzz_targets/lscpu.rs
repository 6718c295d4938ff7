//! Any text gives cpus or an error, by lscpu and as a synthetic description of hwloc.
#![no_main]

use libfuzzer_sys::fuzz_target;
use numalab_formats::{hwloc, lscpu, printed_by};

fuzz_target!(|text: &str| {
    if let Ok(reading) = lscpu::read(text) {
        assert!(!reading.value.cpus.is_empty(), "a machine without cpus");
    }
    if let Ok(reading) = hwloc::read_synthetic(text) {
        let described = hwloc::write_synthetic(&reading.value);
        if let Ok(described) = described {
            hwloc::read_synthetic(&described.output).expect("our own text");
        }
    }
    let _ = printed_by::advice("lscpu", text);
});
