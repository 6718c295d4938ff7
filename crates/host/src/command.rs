//! Runs a command to its end, and no longer than this process.

mod error;
mod held;
mod orphans;
mod pipes;
mod search;
mod start;

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, set_parent_process_death_signal,
    setsid,
};

use crate::proc::{Stat, processes};
use crate::signals::Interrupt;
pub use error::CommandError;
pub use held::spawn_held;
use orphans::RunningCommand;
pub use orphans::{adopt_orphans, end_orphans};
use pipes::Pipes;
pub use search::on_path;
pub use start::{Interpreter, StartError, check_startable, loader_of};

/// Interval at which a waiting thread checks for an interrupt.
const LOOK: Duration = Duration::from_millis(50);
/// Time between SIGTERM and SIGKILL: `srun` needs it to end its job step.
const GRACE: Duration = Duration::from_secs(3);
/// Time that processes started by a command may outlive it. `srun`, for one, has a helper that is
/// still ending at that moment, which is not a leftover.
const LINGER: Duration = Duration::from_millis(500);
const LINGER_LOOK: Duration = Duration::from_millis(10);

/// The standard input of a command.
#[derive(Clone, Copy, Debug, Default)]
pub enum Input<'a> {
    #[default]
    Empty,
    Bytes(&'a [u8]),
    File(&'a Path),
}

impl Input<'_> {
    /// Returns the bytes that are written to a pipe while the command runs.
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Empty | Self::File(_) => &[],
        }
    }

    fn stdio(&self, program: &str) -> Result<Stdio, CommandError> {
        Ok(match self {
            Self::File(path) => {
                let file = fs::File::open(path).map_err(|source| CommandError::NoInput {
                    program: program.to_owned(),
                    input: path.to_path_buf(),
                    source,
                })?;
                file.into()
            }
            _ if self.bytes().is_empty() => Stdio::null(),
            _ => Stdio::piped(),
        })
    }
}

/// The outcome of a command that ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    pub command: String,
    pub status: ExitStatus,
    /// Standard output, at most 8 MiB of it.
    pub stdout: String,
    /// Standard error, at most 8 MiB of it.
    pub stderr: String,
    /// Bytes of output beyond these limits, which were dropped.
    pub dropped_bytes: usize,
    /// Time from start to end.
    pub took: Duration,
    /// Processes that it left running, such as `sleep (1234)`, and that were ended.
    pub left: Vec<String>,
}

impl Ran {
    /// Returns the standard output of a command that succeeded.
    ///
    /// # Errors
    /// [`CommandError::Failed`] for a status other than 0, [`CommandError::TooMuch`] if a part of
    /// the output was dropped.
    pub fn output(self) -> Result<String, CommandError> {
        let Self { command, status, stdout, stderr, dropped_bytes, .. } = self;
        match (status.success(), dropped_bytes) {
            (true, 0) => Ok(stdout),
            (true, dropped_bytes) => Err(CommandError::TooMuch { command, dropped_bytes }),
            (false, _) => {
                Err(CommandError::Failed { command, status, stderr: stderr.trim().to_owned() })
            }
        }
    }
}

/// Creates a command in the C locale, so that its messages can be parsed; the program is found by
/// [`on_path`].
pub fn tool<A: AsRef<OsStr>>(
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = A>,
) -> Command {
    let mut command = users_program(program, arguments);
    // LC_ALL overrides every other variable of the user's locale.
    command.env("LC_ALL", "C");
    command
}

/// Creates a command in the user's locale, for a program that the user named; it is found by
/// [`on_path`].
pub fn users_program<A: AsRef<OsStr>>(
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = A>,
) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    search::seek_safely(&mut command);
    command
}

/// Makes the kernel kill the command when the thread that starts it ends, for whatever reason
/// (prctl(2), `PR_SET_PDEATHSIG`).
pub fn die_with_parent(command: &mut Command) {
    end_with_parent(command, Signal::KILL);
}

/// Makes the kernel send SIGTERM to the command when the thread that starts it ends. A launcher
/// such as `mpirun` or `srun` passes it on to its ranks; SIGKILL would leave them running.
pub fn terminate_with_parent(command: &mut Command) {
    end_with_parent(command, Signal::TERM);
}

fn end_with_parent(command: &mut Command, signal: Signal) {
    let parent = rustix::process::getpid();
    // SAFETY: between fork and exec the closure makes two system calls and returns their
    // result: it allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(signal))?;
            // The kernel sends no signal for a parent that had ended before the prctl.
            match rustix::process::getppid() {
                Some(now) if now == parent => Ok(()),
                _ => Err(Errno::SRCH.into()),
            }
        });
    }
}

/// Starts the command in a new session: it leads a process group and has no terminal.
fn in_own_session(command: &mut Command) {
    // SAFETY: between fork and exec the closure makes one system call and turns its number into an
    // error, which allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(|| Ok(setsid().map(drop)?));
    }
}

/// Runs `command` with no input, like [`run_with_input`], and returns its standard output.
///
/// # Errors
/// [`CommandError`], including a status other than 0.
pub fn output_of(command: Command, limit: Duration) -> Result<String, CommandError> {
    run_command(command, limit, &Interrupt::never())?.output()
}

/// Runs `command` with no input, like [`run_with_input`].
///
/// # Errors
/// [`CommandError`] if it cannot be started or does not end by itself.
pub fn run_command(
    command: Command,
    limit: Duration,
    interrupt: &Interrupt,
) -> Result<Ran, CommandError> {
    run_with_input(command, Input::Empty, limit, interrupt)
}

/// Runs `command` to its end with `input`, in a new session without a terminal.
///
/// Processes that it leaves in its process group are ended. Those that have left the group are
/// ended too if this process [adopts orphans](adopt_orphans); otherwise they are not waited for,
/// even if they hold the outputs open. After `limit`, or when `interrupt` is requested, all get
/// SIGTERM and later SIGKILL. They are killed when this process dies, for whatever reason.
///
/// # Errors
/// [`CommandError`] if the command cannot be started or does not end by itself. A status other than
/// 0 is not an error here.
pub fn run_with_input(
    mut command: Command,
    input: Input<'_>,
    limit: Duration,
    interrupt: &Interrupt,
) -> Result<Ran, CommandError> {
    let program = command.get_program().to_string_lossy().into_owned();
    command.stdin(input.stdio(&program)?).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A session without a terminal, because a command that asks a question must fail rather than
    // wait.
    in_own_session(&mut command);
    die_with_parent(&mut command);
    let begun = Instant::now();
    let mut child = command.spawn().map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => match check_startable(&program) {
            Ok(()) => CommandError::NotFound { program: program.clone() },
            Err(error) => error.into(),
        },
        _ => CommandError::NotRun { program: program.clone(), source },
    })?;
    // Registered at once, so that this command is not taken for an orphan when another one ends.
    let running = RunningCommand::new(child.id());
    let followed = Pipes::of(&mut child, input.bytes()).and_then(|mut pipes| {
        let ending = follow(&child, &mut pipes, begun, limit, interrupt)?;
        Ok((ending, pipes))
    });
    let took = begun.elapsed();
    let is_asked_to_end = followed.as_ref().is_ok_and(|(ending, _)| *ending != Ending::Ended);
    let (mut left, status) = end(&mut child, is_asked_to_end);
    left.extend(running.end_orphans(if is_asked_to_end { Duration::ZERO } else { LINGER }));
    let (ending, mut pipes) =
        followed.map_err(|source| CommandError::NotRun { program: program.clone(), source })?;
    match ending {
        Ending::Interrupted => return Err(CommandError::Interrupted { program }),
        Ending::TimedOut => {
            return Err(CommandError::TimedOut { command: line(&command), limit, left });
        }
        Ending::Ended => {}
    }
    // Drained after the processes have ended, so that their last output is complete.
    pipes.drain();
    Ok(Ran {
        command: line(&command),
        status: status.map_err(|source| CommandError::NotRun { program, source })?,
        stdout: pipes.stdout.text(),
        stderr: pipes.stderr.text(),
        dropped_bytes: pipes.stdout.dropped_bytes + pipes.stderr.dropped_bytes,
        took,
        left,
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Ended,
    TimedOut,
    Interrupted,
}

/// Serves the pipes until the command ends, which `pidfd_open(2)` reports at once.
fn follow(
    child: &Child,
    pipes: &mut Pipes<'_>,
    begun: Instant,
    limit: Duration,
    interrupt: &Interrupt,
) -> io::Result<Ending> {
    let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    loop {
        // poll(2) reports neither the time limit nor an interrupt, so it returns periodically.
        let rest = limit.saturating_sub(begun.elapsed()).min(LOOK);
        let step = Timespec { tv_sec: 0, tv_nsec: i64::from(rest.subsec_nanos()) };
        let mut polled = pipes.polled();
        polled.push(PollFd::new(&pidfd, PollFlags::IN));
        match poll(&mut polled, Some(&step)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if polled.last().is_some_and(|pidfd| !pidfd.revents().is_empty()) {
            return Ok(Ending::Ended);
        }
        pipes.serve();
        if interrupt.requested() {
            return Ok(Ending::Interrupted);
        }
        if begun.elapsed() >= limit {
            return Ok(Ending::TimedOut);
        }
    }
}

/// Ends the command's process group, with SIGTERM first if the command itself is still running.
/// Returns the processes that were left and the command's status.
fn end(child: &mut Child, gently: bool) -> (Vec<String>, io::Result<ExitStatus>) {
    // The leader has not been reaped, so the kernel cannot have reused the id of its group.
    let group = Pid::from_child(child);
    let mut left = in_group(child.id());
    let begun = Instant::now();
    while !gently && !left.is_empty() && begun.elapsed() < LINGER {
        std::thread::sleep(LINGER_LOOK);
        left = in_group(child.id());
    }
    if gently && kill_process_group(group, Signal::TERM).is_ok() {
        wait_for_end(child);
    }
    // Fails if no process is left in the group.
    let _ = kill_process_group(group, Signal::KILL);
    (left, child.wait())
}

/// Waits for the end of a command that got SIGTERM, without reaping it.
fn wait_for_end(child: &Child) {
    let Ok(pidfd) = pidfd_open(Pid::from_child(child), PidfdFlags::empty()) else { return };
    let begun = Instant::now();
    while let Some(rest) = GRACE.checked_sub(begun.elapsed()) {
        let tv_sec = i64::try_from(rest.as_secs()).unwrap_or_default();
        let step = Timespec { tv_sec, tv_nsec: i64::from(rest.subsec_nanos()) };
        match poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&step)) {
            Err(Errno::INTR) => {}
            _ => return,
        }
    }
}

/// Returns the processes of a group except its leader, as `sleep (1234)`. Lower numbers than the
/// leader's were assigned before the group existed and are skipped, which keeps the scan short on a
/// machine with thousands of processes.
fn in_group(leader: u32) -> Vec<String> {
    let later = processes().filter(|process| *process > leader);
    let named = later.filter_map(|process| {
        let stat = Stat::of(process)?;
        let is_left = stat.group == leader && !stat.has_ended();
        is_left.then(|| format!("{} ({process})", stat.name))
    });
    named.collect()
}

/// Returns the program and its arguments as one line.
fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
