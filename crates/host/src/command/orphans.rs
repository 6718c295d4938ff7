//! Processes that a command leaves behind outside its session: the kernel makes this process their
//! parent when their own ends (prctl(2), `PR_SET_CHILD_SUBREAPER`).

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid,
};

use super::{GRACE, LINGER};
use crate::proc::{Stat, processes};

/// Interval at which orphans that may end by themselves are checked.
const LOOK: Duration = Duration::from_millis(10);
/// Longest wait for a process in uninterruptible sleep, which cannot be killed.
const LONGEST: Duration = Duration::from_secs(20);

/// The commands that are running now, by process id.
static RUNNING: Mutex<Vec<u32>> = Mutex::new(Vec::new());
static ADOPTS: AtomicBool = AtomicBool::new(false);

/// Makes this process the parent of every orphan below it, so that processes which have left a
/// command's session can be ended with it.
///
/// # Errors
/// The kernel's error.
pub fn adopt_orphans() -> io::Result<()> {
    set_child_subreaper(Some(getpid()))?;
    ADOPTS.store(true, Ordering::Relaxed);
    Ok(())
}

/// Ends every process that a command left in this process's session, and returns their names, such
/// as `sleep (1234)`. For a process that [adopts orphans](adopt_orphans) and has started only this
/// command, which has ended.
pub fn end_orphans() -> Vec<String> {
    let own = std::process::id();
    end_all(LINGER, |stat| stat.parent == own)
}

fn running() -> MutexGuard<'static, Vec<u32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A command that is running in its own session. All are registered, so that none is mistaken for
/// an orphan.
pub(super) struct RunningCommand {
    number: u32,
}

impl RunningCommand {
    pub(super) fn new(number: u32) -> Self {
        running().push(number);
        Self { number }
    }

    /// Ends the processes that the command left outside its session after it has ended, and returns
    /// their names. Those that end by themselves within `patience` are not reported. While other
    /// commands run, orphans may be theirs, so the last command to end does this for all.
    pub(super) fn end_orphans(&self, patience: Duration) -> Vec<String> {
        if !ADOPTS.load(Ordering::Relaxed) || running().iter().any(|other| *other != self.number) {
            return Vec::new();
        }
        // Everything else that this process starts is in its session.
        let own = std::process::id();
        let own_session = Stat::of(own).map(|stat| stat.session);
        end_all(patience, |stat| stat.parent == own && Some(stat.session) != own_session)
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        running().retain(|number| *number != self.number);
    }
}

/// Ends the orphans among the processes, with SIGTERM first, and returns the names of those that
/// did not end by themselves within `patience`.
fn end_all(patience: Duration, is_orphan: impl Fn(&Stat) -> bool) -> Vec<String> {
    let mut named: Vec<(Pid, String)> = Vec::new();
    let begun = Instant::now();
    // A child of an orphan becomes an orphan itself when its parent has ended: look again until
    // there are none.
    loop {
        let found = orphans(&is_orphan);
        let over = begun.elapsed().checked_sub(patience);
        if found.is_empty() || over.is_some_and(|over| over > LONGEST) {
            return named.into_iter().map(|(_, name)| name).collect();
        }
        for (pid, name) in found {
            let has_ended = matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(Some(_)));
            let Some(over) = over.filter(|_| !has_ended) else { continue };
            let is_named = named.iter().any(|(other, _)| *other == pid);
            // Fails if the process has just ended by itself, which is fine too.
            if over >= GRACE {
                let _ = kill_process(pid, Signal::KILL);
            } else if !is_named {
                let _ = kill_process(pid, Signal::TERM);
            }
            if !is_named {
                named.push((pid, format!("{name} ({})", pid.as_raw_nonzero())));
            }
        }
        thread::sleep(LOOK);
    }
}

/// Returns the current orphans, excluding running commands.
fn orphans(is_orphan: impl Fn(&Stat) -> bool) -> Vec<(Pid, String)> {
    let known = running().clone();
    let found = processes().filter(|process| !known.contains(process)).filter_map(|process| {
        let stat = Stat::of(process).filter(&is_orphan)?;
        Some((i32::try_from(process).ok().and_then(Pid::from_raw)?, stat.name))
    });
    found.collect()
}
