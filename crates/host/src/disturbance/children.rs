//! The time of processes that this one started and that still run.

use std::fs;

/// Cpu time of all living processes below this one, with that of the children which they
/// have waited for, in ticks of the kernel's counters. Nothing where the kernel does not
/// list children (`CONFIG_PROC_CHILDREN`).
pub(super) fn living_children_ticks() -> u64 {
    let mut waiting = children("self");
    let mut ticks = 0_u64;
    while let Some(pid) = waiting.pop() {
        waiting.extend(children(&pid));
        // A process that has ended since is counted by whoever waits for it.
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        ticks = ticks.saturating_add(ticks_of(&stat));
    }
    ticks
}

/// The processes that any thread of a process started.
fn children(pid: &str) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// `utime`, `stime`, `cutime` and `cstime` of `/proc/PID/stat` (`proc_pid_stat(5)`), the 12th
/// to 15th field after the name, which may have blanks and brackets in it.
fn ticks_of(stat: &str) -> u64 {
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let times = after_name.split_ascii_whitespace().skip(11).take(4);
    times.filter_map(|time| time.parse::<u64>().ok()).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_name_may_have_blanks_and_brackets() {
        let stat = "7 (a) b 9) R 1 7 7 0 -1 4194304 10 0 0 0 100 20 3 4 20 0 1 0 5 6 7";
        assert_eq!(ticks_of(stat), 127);
        assert_eq!(ticks_of("nonsense"), 0);
    }

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
