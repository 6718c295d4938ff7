//! Checks before a boot that this machine has enough memory for it.

use std::fs;

const MIB: u64 = 1 << 20;
/// Memory for QEMU itself, and for the memory that the kernel fills.
const REST_BYTES: u64 = 2 << 30;

/// Returns true if this machine has the memory to spare for a guest in which all frames are
/// allocated. If not, a message on stderr says what is missing.
///
/// Allocating them touches a line of each piece of 2 MiB. That costs the host as much where it
/// gives QEMU transparent huge pages, and hardly anything where it does not.
pub fn has_memory(test: &str, guest_bytes: u64) -> bool {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let transparent = read("/sys/kernel/mm/transparent_hugepage/enabled");
    let needed_bytes = needed(guest_bytes, &transparent);
    eprintln!("{test}: needs {} MiB of memory", needed_bytes / MIB);
    let found = suffices(&read("/proc/meminfo"), needed_bytes);
    found.inspect_err(|missing| eprintln!("NOT RUN: {test}: {missing}")).is_ok()
}

fn needed(guest_bytes: u64, transparent: &str) -> u64 {
    let has_huge = !transparent.is_empty() && !transparent.contains("[never]");
    if has_huge { guest_bytes + REST_BYTES } else { REST_BYTES }
}

fn suffices(meminfo: &str, needed_bytes: u64) -> Result<(), String> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
    let needed = needed_bytes / MIB;
    match kib.map(|kib| kib >> 10) {
        Some(free) if free >= needed => Ok(()),
        Some(free) => Err(format!("{needed} MiB of memory are needed, {free} MiB are available")),
        None => {
            Err(format!("{needed} MiB of memory are needed; /proc/meminfo has no MemAvailable"))
        }
    }
}

#[test]
fn a_machine_with_too_little_memory_is_recognized() {
    let of = |kib: u64| format!("MemTotal: 99999999 kB\nMemAvailable:   {kib} kB\n");
    assert_eq!(suffices(&of(1 << 20), 1 << 30), Ok(()));
    let expected = "1024 MiB of memory are needed, 1023 MiB are available";
    assert_eq!(suffices(&of((1 << 20) - 1), 1 << 30), Err(expected.to_owned()));
    assert!(suffices("", 1).unwrap_err().contains("no MemAvailable"));
}

#[test]
fn all_of_a_guest_is_needed_where_its_pieces_are_huge_pages() {
    let guest_bytes = 32 << 30;
    for huge in ["[always] madvise never\n", "always [madvise] never\n"] {
        assert_eq!(needed(guest_bytes, huge), 34 << 30);
    }
    for small in ["always madvise [never]\n", ""] {
        assert_eq!(needed(guest_bytes, small), 2 << 30);
    }
}
