//! Any text gives curves or an error; curves that are written again read the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use numalab_formats::mess;

fuzz_target!(|text: &str| {
    let _ = mess::read_simulator(60.0, text);
    if let Ok(curves) = mess::read(text) {
        assert_eq!(mess::read(&mess::write(&curves)).map(|again| again.len()), Ok(curves.len()));
    }
});
