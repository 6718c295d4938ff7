//! Cpu time of children that are still running.

use crate::proc::{Stat, descendants};

/// Returns the cpu time, in ticks of `/proc/PID/stat`, of all living descendants of this process
/// and of the children that they have waited for. Returns 0 on a kernel that does not list children
/// (`CONFIG_PROC_CHILDREN`).
pub(super) fn living_children_ticks() -> u64 {
    // The time of a process that has ended since is in its parent's counter.
    let stats = descendants(std::process::id()).filter_map(Stat::of);
    stats.fold(0, |ticks, stat| {
        ticks.saturating_add(stat.cpu_ticks).saturating_add(stat.children_ticks)
    })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_running_child_and_its_own_child_are_counted() {
        let before = living_children_ticks();
        let mut command = Command::new("sh");
        command.args(["-c", "sh -c 'while :; do :; done' & read line; kill $!"]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let begun = Instant::now();
        while living_children_ticks() < before + 5 {
            assert!(begun.elapsed() < Duration::from_secs(60), "its time is not seen");
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
