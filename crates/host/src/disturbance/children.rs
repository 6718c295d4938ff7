//! The time of processes that this one started and that still run.

use std::fs;

use crate::proc::Stat;

/// Cpu time of all living processes below this one, with that of the children which they
/// have waited for, in ticks of the kernel's counters. Nothing where the kernel does not
/// list children (`CONFIG_PROC_CHILDREN`).
pub(super) fn living_children_ticks() -> u64 {
    let mut waiting = children("self");
    let mut ticks = 0_u64;
    while let Some(pid) = waiting.pop() {
        waiting.extend(children(&pid));
        // A process that has ended since is counted by whoever waits for it.
        let stat = pid.parse().ok().and_then(Stat::of);
        let of_it = stat.map_or(0, |stat| stat.cpu_ticks.saturating_add(stat.children_ticks));
        ticks = ticks.saturating_add(of_it);
    }
    ticks
}

/// The processes that any thread of a process started.
fn children(pid: &str) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_child_that_still_runs_is_counted_and_so_is_its_own_child() {
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
