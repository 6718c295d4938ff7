//! The number of threads that this process may start.

use std::io;
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};

use crate::cgroup;
use crate::error_class::{Classed, ErrorClass};
use crate::root::Root;

/// Stack of a thread that only waits, in bytes.
const STACK: usize = 64 << 10;

/// Reason why threads cannot be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "fields of errors that their names explain")]
pub enum ThreadsError {
    #[error(
        "{wanted} threads needed at once, but only {started} can be started ({limit}): raise the \
         limit (ulimit -u, TasksMax= of systemd, --pids-limit of containers), or choose fewer cpus"
    )]
    TooFew { wanted: usize, started: usize, limit: String },
}

impl Classed for ThreadsError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Lacking
    }
}

/// Checks that this number of threads can run at once, by starting them: workers that wait for each
/// other would wait for ever if the kernel refused the last one.
///
/// # Errors
/// [`ThreadsError::TooFew`] with the limits that are set.
pub fn expect_threads(wanted: usize) -> Result<(), ThreadsError> {
    let start = |hold: Receiver<()>| {
        thread::Builder::new().stack_size(STACK).spawn(move || _ = hold.recv())
    };
    match startable(wanted, start) {
        started if started < wanted => {
            Err(ThreadsError::TooFew { wanted, started, limit: process_limits() })
        }
        _ => Ok(()),
    }
}

/// Returns how many of the wanted threads run at once.
fn startable(wanted: usize, start: impl Fn(Receiver<()>) -> io::Result<JoinHandle<()>>) -> usize {
    let mut held = Vec::new();
    while held.len() < wanted {
        let (holding, hold) = mpsc::channel::<()>();
        let Ok(started) = start(hold) else { break };
        held.push((holding, started));
    }
    let started = held.len();
    for (holding, thread) in held {
        drop(holding);
        // A thread that only waits does not panic.
        _ = thread.join();
    }
    started
}

/// Returns the limits of processes that apply to this process, as far as they are set.
pub fn process_limits() -> String {
    limits(&Root::live())
}

fn limits(root: &Root) -> String {
    let limits = root.document("proc/self/limits").unwrap_or_default();
    let of_user = limits.lines().find_map(|line| {
        let soft = line.strip_prefix("Max processes")?.split_whitespace().next()?;
        (soft != "unlimited").then(|| format!("ulimit -u is {soft}"))
    });
    let of_group = cgroup::group_file(root, "pids.max").and_then(|file| {
        let most = root.value(&file).ok()?;
        (most != "max").then(|| format!("/{} is {most}", file.trim_start_matches('/')))
    });
    let set: Vec<String> = of_user.into_iter().chain(of_group).collect();
    if set.is_empty() { "no limit of this process is known".to_owned() } else { set.join(", ") }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::test_tree::tree;

    #[test]
    fn threads_that_the_kernel_refuses_are_counted_before_any_waits_for_them() {
        let given = Cell::new(0);
        let start = |hold: Receiver<()>| {
            given.set(given.get() + 1);
            match given.get() {
                1..=3 => thread::Builder::new().spawn(move || _ = hold.recv()),
                _ => Err(io::ErrorKind::WouldBlock.into()),
            }
        };
        assert_eq!(startable(8, start), 3);
        assert_eq!(expect_threads(2), Ok(()));
    }

    #[test]
    fn the_limits_of_the_user_and_of_the_control_group_are_named() {
        let top = tree(&[
            ("proc/self/limits", "Limit  Soft Limit  Hard Limit\nMax processes  7  9  processes\n"),
            ("proc/self/cgroup", "0::/job\n"),
            ("proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("sys/fs/cgroup/job/pids.max", "12\n"),
        ]);
        let expected = "ulimit -u is 7, /sys/fs/cgroup/job/pids.max is 12";
        assert_eq!(limits(&Root::at(top.path())), expected);
        let top = tree(&[
            ("proc/self/cgroup", "8:pids:/job\n0::/\n"),
            ("proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"),
            ("sys/fs/cgroup/pids/job/pids.max", "12\n"),
        ]);
        let expected = "/sys/fs/cgroup/pids/job/pids.max is 12";
        assert_eq!(limits(&Root::at(top.path())), expected);
        assert_eq!(limits(&Root::at("/nonexistent")), "no limit of this process is known");
    }
}
