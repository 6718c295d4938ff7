//! What a command leaves behind, wherever it went: the kernel gives orphans to the nearest process
//! that adopts them (prctl(2), `PR_SET_CHILD_SUBREAPER`).

use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};

use crate::proc::{Stat, descendants};

/// How long those have that were told to end, before they are killed.
const GRACE: Duration = Duration::from_secs(2);
/// One that a device holds up cannot be killed, and is not waited for longer.
const LONGEST: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(10);

/// From now on this process is the parent of every orphan below it, until it ends.
///
/// # Errors
/// The kernel's refusal.
pub fn adopt_descendants() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Ends all processes below this one, gently first, and names them: `sleep (1234)`. For a process
/// that [adopts](adopt_descendants) and has started one command alone, which has ended.
#[must_use]
pub fn end_descendants() -> Vec<String> {
    let left: Vec<(u32, String)> = descendants(std::process::id())
        .filter_map(|process| Some((process, Stat::of(process)?)))
        .filter(|(_, stat)| !stat.has_ended())
        .map(|(process, stat)| (process, format!("{} ({process})", stat.name)))
        .collect();
    left.iter().for_each(|(process, _)| tell(*process, Signal::TERM));
    let begun = Instant::now();
    while !all_have_ended() && begun.elapsed() < LONGEST {
        if begun.elapsed() > GRACE {
            // What they started meanwhile is found anew each time.
            descendants(std::process::id()).for_each(|process| tell(process, Signal::KILL));
        }
        sleep(LOOK);
    }
    left.into_iter().map(|(_, name)| name).collect()
}

/// Takes note of those that have ended, and whether there are no others: orphans come to this
/// process, so that all of them are its children in the end.
fn all_have_ended() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => return false,
            Err(errno) => return errno == Errno::CHILD,
        }
    }
}

fn tell(process: u32, signal: Signal) {
    if let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        // One that has ended by itself is as well.
        let _ = kill_process(process, signal);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// In a process of its own: it ends everything below it.
    #[test]
    fn a_daemon_is_named_and_ended_even_if_it_does_not_listen() {
        if std::env::var_os("NUMALAB_ADOPTS").is_none() {
            let name = "command::descendants::tests::a_daemon_is_named_and_ended_even_if_it_does_not_listen";
            let mut own = Command::new(std::env::current_exe().unwrap());
            own.args(["--exact", name]).env("NUMALAB_ADOPTS", "1");
            assert!(own.status().unwrap().success());
            return;
        }
        adopt_descendants().unwrap();
        let script =
            "(setsid sh -c 'trap : TERM; sleep 600 & while :; do sleep 1; done' &) ; sleep 0.2";
        assert!(Command::new("sh").args(["-c", script]).status().unwrap().success());
        let left = end_descendants();
        assert!(left.iter().any(|of| of.starts_with("sh (")), "{left:?}");
        assert_eq!(descendants(std::process::id()).count(), 0);
        assert_eq!(end_descendants(), [] as [String; 0]);
    }
}
