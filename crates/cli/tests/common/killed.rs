//! Commands that are killed at moments spread over their time.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Returns the number of kills for each command: `few`, or 200 with `NUMALAB_LONG=1`.
pub fn kills(few: u64) -> u64 {
    let long = std::env::var_os("NUMALAB_LONG").is_some_and(|value| value == "1");
    if long { 200 } else { few }
}

/// Kills a command at a moment in its run time; the moments of all kills are evenly spread and in
/// irregular order. Returns the exit status, as it may already have ended.
pub fn kill_within(mut child: Child, kill: u64, takes: Duration) -> ExitStatus {
    let spread = (kill * 61) % 101;
    sleep(takes.mul_f64(f64::from(u8::try_from(spread).expect("small")) / 100.0));
    let _ = child.kill();
    child.wait().expect("it ended")
}

/// Fails unless all processes in a directory end soon after their launcher was killed.
pub fn is_left(directory: &Path) {
    let begun = Instant::now();
    while let Some(process) = process_in(directory) {
        let late = begun.elapsed() > Duration::from_secs(120);
        assert!(!late, "process {process} outlives its launcher");
        sleep(Duration::from_millis(5));
    }
}

fn process_in(directory: &Path) -> Option<String> {
    let inside = |entry: &fs::DirEntry| {
        fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(directory))
    };
    let mut processes = fs::read_dir("/proc").expect("processes").flatten();
    processes.find(inside).map(|entry| entry.file_name().to_string_lossy().into_owned())
}

pub fn names_in(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).expect("readable").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
