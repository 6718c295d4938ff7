//! Any text gives an architecture file or an error, and its machine can be drawn.
#![no_main]

use libfuzzer_sys::fuzz_target;
use numalab_formats::{architecture, lscpu, svg};

fuzz_target!(|text: &str| {
    let _ = lscpu::read(text);
    if let Ok(reading) = architecture::read(text) {
        let machine = reading.value.machine;
        let _ = machine.validate();
        if machine.cpus.len() < 500 && machine.nodes.len() < 40 {
            let _ = svg::write(&machine);
        }
    }
});
