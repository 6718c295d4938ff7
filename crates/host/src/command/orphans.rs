//! What has left the session of the command that started it, as daemons do: the kernel gives such
//! processes to this one when their parent ends (prctl(2), `PR_SET_CHILD_SUBREAPER`).

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid,
};

use crate::proc::{Stat, processes};

/// How often orphans are looked at that may end by themselves.
const LOOK: Duration = Duration::from_millis(10);

/// The commands that are running now, by number.
static RUNNING: Mutex<Vec<u32>> = Mutex::new(Vec::new());
static ADOPTS: AtomicBool = AtomicBool::new(false);

/// From now on, what a command leaves behind is ended with it even if it has left the command's
/// session.
///
/// # Errors
/// The kernel's refusal.
pub fn adopt_orphans() -> io::Result<()> {
    set_child_subreaper(Some(getpid()))?;
    ADOPTS.store(true, Ordering::Relaxed);
    Ok(())
}

fn running() -> MutexGuard<'static, Vec<u32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A command that is running. Every one is known, so that none is taken for an orphan.
pub(super) struct Known {
    number: u32,
}

impl Known {
    pub(super) fn new(number: u32) -> Self {
        running().push(number);
        Self { number }
    }

    /// Ends what the command left behind outside of its session, now that it has ended itself, and
    /// names it; what ends by itself before `patience` is over is not meant. Where other commands
    /// run at the same time it may be theirs, and the last of them does it.
    pub(super) fn end_orphans(&self, patience: Duration) -> Vec<String> {
        let mut ended = Vec::new();
        if !ADOPTS.load(Ordering::Relaxed) || running().iter().any(|other| *other != self.number) {
            return ended;
        }
        let begun = Instant::now();
        // What an orphan started becomes one when it has ended.
        loop {
            let found: Vec<Orphan> = orphans().collect();
            if found.is_empty() {
                return ended;
            }
            let is_over = begun.elapsed() >= patience;
            for Orphan { pid, name, has_ended } in found {
                if is_over && !has_ended {
                    // It fails if it has just ended by itself, which is as well.
                    let _ = kill_process(pid, Signal::KILL);
                    ended.push(format!("{name} ({})", pid.as_raw_nonzero()));
                }
                if is_over || has_ended {
                    let _ = waitpid(Some(pid), WaitOptions::empty());
                }
            }
            if !is_over {
                thread::sleep(LOOK);
            }
        }
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        running().retain(|number| *number != self.number);
    }
}

/// A child of this process that a command started.
struct Orphan {
    pid: Pid,
    name: String,
    has_ended: bool,
}

/// Children of this process in other sessions: a command's own children are in its session, and
/// whatever else this process starts is in this one.
fn orphans() -> impl Iterator<Item = Orphan> {
    let own = std::process::id();
    let known = running().clone();
    let own_session = Stat::of(own).map(|stat| stat.session);
    processes().filter_map(move |process| {
        let stat = Stat::of(process).filter(|stat| stat.parent == own)?;
        let is_orphan = !known.contains(&process) && Some(stat.session) != own_session;
        let pid = i32::try_from(process).ok().and_then(Pid::from_raw)?;
        let has_ended = stat.has_ended();
        is_orphan.then_some(Orphan { pid, name: stat.name, has_ended })
    })
}
