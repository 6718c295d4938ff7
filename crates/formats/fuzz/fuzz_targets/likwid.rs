//! Any text gives cpus on nodes or an error, as likwid-topology prints them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use numalab_formats::likwid;

fuzz_target!(|text: &str| {
    if let Ok(reading) = likwid::read(text) {
        let machine = reading.value;
        assert!(!machine.cpus.is_empty(), "a machine without cpus");
        assert!(machine.cpus.iter().all(|cpu| cpu.node.is_some()), "a cpu without a node");
    }
});
