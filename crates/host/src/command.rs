//! A command that is run to its end, and that does not outlive this process.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, set_parent_process_death_signal,
};

use crate::error::ErrorClass;
use crate::signals::Interrupt;

/// How often a waiting thread looks whether it was interrupted.
const LOOK_NS: i64 = 50_000_000;
/// The most that is kept of what a command prints; the rest is read and dropped.
const OUTPUT_BYTES: u64 = 8 << 20;

/// What became of a command.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
    /// From its start to its end.
    pub took: Duration,
}

/// Why a command did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// There is no such program.
    #[error("`{program}` is not there: install it, or correct its name")]
    NotFound {
        /// The program.
        program: String,
    },
    /// The system did not start or watch it.
    #[error("cannot run `{program}`: {source}")]
    NotRun {
        /// The program.
        program: String,
        /// The system's reason.
        source: io::Error,
    },
    /// It took longer than it may, and was ended.
    #[error("`{program}` had not ended after {} s", limit.as_secs_f64())]
    TimedOut {
        /// The program.
        program: String,
        /// The time allowed.
        limit: Duration,
    },
    /// The user interrupted this process, so it was ended.
    #[error("`{program}` was interrupted")]
    Interrupted {
        /// The program.
        program: String,
    },
}

impl CommandError {
    /// The class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::NotFound { .. } => ErrorClass::Lacking,
            _ => ErrorClass::Failed,
        }
    }
}

/// Runs `command` to its end with no input, in a process group of its own. Whatever it
/// leaves running in that group is ended with it; all are ended after `limit`, when
/// `interrupt` is requested, and when this process dies, however it dies.
///
/// # Errors
/// [`CommandError`] if it cannot be started or does not end by itself.
pub fn run_command(
    mut command: Command,
    limit: Duration,
    interrupt: &Interrupt,
) -> Result<Ran, CommandError> {
    let program = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    // SAFETY: between fork and exec the closure makes one system call and returns its
    // result: it allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
    let begun = Instant::now();
    let mut child = command.spawn().map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => CommandError::NotFound { program: program.clone() },
        _ => CommandError::NotRun { program: program.clone(), source },
    })?;
    let readers = (reader(child.stdout.take()), reader(child.stderr.take()));
    let waited = wait(&child, begun, limit, interrupt);
    let took = begun.elapsed();
    // The leader is not reaped yet, so its group is still its own.
    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    let status = child.wait();
    let (stdout, stderr) = (text(readers.0), text(readers.1));
    match waited.and_then(|waited| Ok((waited, status?))) {
        Ok((Waited::Ended, status)) => Ok(Ran { status, stdout, stderr, took }),
        Ok((Waited::TimedOut, _)) => Err(CommandError::TimedOut { program, limit }),
        Ok((Waited::Interrupted, _)) => Err(CommandError::Interrupted { program }),
        Err(source) => Err(CommandError::NotRun { program, source }),
    }
}

enum Waited {
    Ended,
    TimedOut,
    Interrupted,
}

/// Waits by `pidfd_open(2)`, which is told of the end at once.
fn wait(
    child: &Child,
    begun: Instant,
    limit: Duration,
    interrupt: &Interrupt,
) -> io::Result<Waited> {
    let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let step = Timespec { tv_sec: 0, tv_nsec: LOOK_NS };
    loop {
        match poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&step)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(Waited::Ended),
            Err(error) => return Err(error.into()),
        }
        if interrupt.requested() {
            return Ok(Waited::Interrupted);
        }
        if begun.elapsed() >= limit {
            return Ok(Waited::TimedOut);
        }
    }
}

/// Reads a pipe to its end, so that the command never waits for its reader.
fn reader(pipe: Option<impl Read + Send + 'static>) -> Option<JoinHandle<Vec<u8>>> {
    let mut pipe = pipe?;
    Some(thread::spawn(move || {
        let mut kept = Vec::new();
        // What cannot be read is missing from the output, which its reader will say.
        let _ = pipe.by_ref().take(OUTPUT_BYTES).read_to_end(&mut kept);
        let _ = io::copy(&mut pipe, &mut io::sink());
        kept
    }))
}

fn text(reader: Option<JoinHandle<Vec<u8>>>) -> String {
    let bytes = reader.and_then(|reader| reader.join().ok()).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit_ms: u64) -> Result<Ran, CommandError> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run_command(command, Duration::from_millis(limit_ms), &Interrupt::never())
    }

    #[test]
    fn output_status_and_time_are_those_of_the_command() {
        let ran = shell("echo out; echo err >&2; sleep 0.05; exit 3", 60_000).unwrap();
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("out\n", "err\n"));
        assert_eq!(ran.status.code(), Some(3));
        assert!(ran.took >= Duration::from_millis(50));
    }

    #[test]
    fn more_output_than_is_kept_does_not_stop_it() {
        let ran = shell("head -c 12000000 /dev/zero", 60_000).unwrap();
        assert_eq!(ran.stdout.len() as u64, OUTPUT_BYTES);
        assert!(ran.status.success());
    }

    #[test]
    fn what_takes_too_long_is_ended_with_all_that_it_started() {
        let error = shell("sleep 600 & sleep 600", 100).unwrap_err();
        assert!(matches!(error, CommandError::TimedOut { .. }), "{error}");
        assert_eq!(error.to_string(), "`sh` had not ended after 0.1 s");
    }

    #[test]
    fn what_is_left_running_is_ended_and_not_waited_for() {
        let begun = Instant::now();
        let ran = shell("sleep 600 & echo $!", 60_000).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(60));
        let left = format!("/proc/{}/stat", ran.stdout.trim());
        // The signal is sent; on a busy machine the process needs a moment to die of it.
        let gone = || {
            let state = std::fs::read_to_string(&left).unwrap_or_default();
            state.is_empty() || state.contains(") Z ")
        };
        while !gone() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{left} is still there");
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_lacking() {
        let none = Command::new("numalab-no-such-program");
        let error = run_command(none, Duration::from_secs(1), &Interrupt::never()).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Lacking);
        assert!(error.to_string().contains("numalab-no-such-program"), "{error}");
    }
}
