//! What a command leaves behind, wherever it went: the kernel gives a process to this one when the
//! parent of it ends (prctl(2), `PR_SET_CHILD_SUBREAPER`).

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

/// How often orphans are looked at that may end by themselves.
const LOOK: Duration = Duration::from_millis(10);
/// One that a device holds up cannot be killed, and is not waited for longer.
const LONGEST: Duration = Duration::from_secs(20);

/// The commands that are running now, by number.
static RUNNING: Mutex<Vec<u32>> = Mutex::new(Vec::new());
static ADOPTS: AtomicBool = AtomicBool::new(false);

/// From now on this process is the parent of every orphan below it, so that what a command leaves
/// behind is ended with it even if it has left the command's session.
///
/// # Errors
/// The kernel's refusal.
pub fn adopt_orphans() -> io::Result<()> {
    set_child_subreaper(Some(getpid()))?;
    ADOPTS.store(true, Ordering::Relaxed);
    Ok(())
}

/// Ends all that is left of a command in the session of this process, and names it: `sleep (1234)`.
/// For a process that [adopts](adopt_orphans) and has started this command alone, which has ended.
#[must_use]
pub fn end_orphans() -> Vec<String> {
    let own = std::process::id();
    end_all(LINGER, |stat| stat.parent == own)
}

fn running() -> MutexGuard<'static, Vec<u32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A command that is running in a session of its own. Every one is known, so that none is taken for
/// an orphan.
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
        if !ADOPTS.load(Ordering::Relaxed) || running().iter().any(|other| *other != self.number) {
            return Vec::new();
        }
        // Whatever else this process starts is in its session.
        let own = std::process::id();
        let own_session = Stat::of(own).map(|stat| stat.session);
        end_all(patience, |stat| stat.parent == own && Some(stat.session) != own_session)
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        running().retain(|number| *number != self.number);
    }
}

/// Ends the orphans among the processes, gently first, and names those that did not end by
/// themselves before `patience` was over.
fn end_all(patience: Duration, is_orphan: impl Fn(&Stat) -> bool) -> Vec<String> {
    let mut told: Vec<(Pid, String)> = Vec::new();
    let begun = Instant::now();
    // What an orphan started becomes one when it has ended.
    loop {
        let found = orphans(&is_orphan);
        let over = begun.elapsed().checked_sub(patience);
        if found.is_empty() || over.is_some_and(|over| over > LONGEST) {
            return told.into_iter().map(|(_, name)| name).collect();
        }
        for (pid, name) in found {
            let has_ended = matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(Some(_)));
            let Some(over) = over.filter(|_| !has_ended) else { continue };
            let is_told = told.iter().any(|(other, _)| *other == pid);
            // It fails where that has just ended by itself, which is as well.
            if over >= GRACE {
                let _ = kill_process(pid, Signal::KILL);
            } else if !is_told {
                let _ = kill_process(pid, Signal::TERM);
            }
            if !is_told {
                told.push((pid, format!("{name} ({})", pid.as_raw_nonzero())));
            }
        }
        thread::sleep(LOOK);
    }
}

/// The orphans of now, but no command that is running.
fn orphans(is_orphan: impl Fn(&Stat) -> bool) -> Vec<(Pid, String)> {
    let known = running().clone();
    let found = processes().filter(|process| !known.contains(process)).filter_map(|process| {
        let stat = Stat::of(process).filter(&is_orphan)?;
        Some((i32::try_from(process).ok().and_then(Pid::from_raw)?, stat.name))
    });
    found.collect()
}
