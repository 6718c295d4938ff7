//! What a machine's boot needs of this machine's memory, said before it starts.

use std::fs;

const MIB: u64 = 1 << 20;

/// Whether this machine has so much memory to spare. If not, a message on stderr says what is
/// missing; it fails where tests must run.
pub fn has_memory(test: &str, needed_bytes: u64) -> bool {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let Err(missing) = suffices(&meminfo, needed_bytes) else { return true };
    let required = std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_some_and(|v| v == "1");
    assert!(!required, "{test}: {missing}");
    eprintln!("NOT RUN: {test}: {missing}");
    false
}

fn suffices(meminfo: &str, needed_bytes: u64) -> Result<(), String> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
    let needed = needed_bytes / MIB;
    match kib.map(|kib| kib >> 10) {
        Some(free) if free >= needed => Ok(()),
        Some(free) => Err(format!("needs {needed} MiB of memory, {free} MiB are available")),
        None => Err(format!("needs {needed} MiB of memory, /proc/meminfo has no MemAvailable")),
    }
}

#[test]
fn a_machine_with_less_memory_than_needed_is_told_apart() {
    let of = |kib: u64| format!("MemTotal: 99999999 kB\nMemAvailable:   {kib} kB\n");
    assert_eq!(suffices(&of(1 << 20), 1 << 30), Ok(()));
    let expected = "needs 1024 MiB of memory, 1023 MiB are available";
    assert_eq!(suffices(&of((1 << 20) - 1), 1 << 30), Err(expected.to_owned()));
    assert!(suffices("", 1).unwrap_err().contains("no MemAvailable"));
}
