//! The size of the kernel, and its boot time.

use crate::qemu::{DONE, Qemu, arguments, machine};

const TEXT_BYTES: u64 = 208 << 10;

/// Returns the size in bytes of the executable segments, by the program headers (System V ABI,
/// chapter 5).
fn text_bytes(elf: &[u8]) -> u64 {
    let number = |at: usize, bytes: usize| {
        let digits = elf[at..at + bytes].iter().rev();
        digits.fold(0, |number, &byte| number << 8 | u64::from(byte))
    };
    let at = |place: usize, bytes| usize::try_from(number(place, bytes)).expect("within the file");
    let (first, size, count) = (at(0x20, 8), at(0x36, 2), at(0x38, 2));
    let headers = (0..count).map(|index| first + index * size);
    let can_be_executed = |header: &usize| number(header + 4, 4) & 1 == 1;
    headers.filter(can_be_executed).map(|header| number(header + 0x20, 8)).sum()
}

#[test]
fn the_text_is_under_208_kib() {
    let Some(qemu) = Qemu::open() else { return };
    let bytes = text_bytes(&std::fs::read(qemu.kernel()).expect("built"));
    eprintln!("{bytes} bytes of text");
    assert!((16 << 10..TEXT_BYTES).contains(&bytes), "{bytes} bytes, at most {TEXT_BYTES}");
}

#[test]
fn eight_cpus_are_up_within_a_second_of_virtual_time() {
    let Some(qemu) = Qemu::open() else { return };
    // Time advances by instructions, so the host's speed does not matter.
    let mut words = arguments(&machine("4", 8, 2 << 30, None));
    words.extend(["-icount", "shift=0"].map(str::to_owned));
    let results = qemu.boot(&words, "work=chase size=64K count=100").results(DONE);
    let boot = results.boot.expect("it booted");
    assert_eq!((boot.cpus, boot.started), (8, 8));
    let boot_ms = boot.boot_ticks / boot.tsc_khz;
    assert!((1..1000).contains(&boot_ms), "{boot_ms} ms");
}
