//! Any text gives a machine from lstopo XML or an error; the machine can be written again or is
//! refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use numalab_formats::hwloc::{read_xml, write_synthetic, write_xml};

fuzz_target!(|text: &str| {
    if let Ok(reading) = read_xml(text) {
        let machine = reading.value;
        let _ = machine.validate();
        let _ = write_synthetic(&machine);
        if let Ok(written) = write_xml(&machine) {
            let again = read_xml(&written).expect("our own XML").value;
            assert_eq!(again.online_cpus(), machine.online_cpus());
        }
    }
});
