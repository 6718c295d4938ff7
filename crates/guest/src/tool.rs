//! Runs another program to its end, within a time limit.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long the wait for a program sleeps between looks.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How a program ended and what it printed.
#[derive(Debug)]
pub struct Finished {
    /// Its status.
    pub status: ExitStatus,
    /// Its standard output.
    pub output: String,
    /// Its standard error.
    pub errors: String,
}

/// Why a program gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The program is not on this machine.
    #[error("{program} is not on this machine")]
    Absent {
        /// Its name.
        program: String,
    },
    /// The program could not be started or read.
    #[error("{program}: {source}")]
    Start {
        /// Its name.
        program: String,
        /// What the system says.
        source: io::Error,
    },
    /// The program took too long and was ended.
    #[error("{program} {arguments}: not done after {limit:?}")]
    TooLong {
        /// Its name.
        program: String,
        /// Its arguments.
        arguments: String,
        /// The limit.
        limit: Duration,
    },
    /// The program failed.
    #[error("{program} {arguments}: {status}: {errors}")]
    Failed {
        /// Its name.
        program: String,
        /// Its arguments.
        arguments: String,
        /// Its status.
        status: ExitStatus,
        /// What it said on its standard error.
        errors: String,
    },
}

/// A program with its arguments, in the C locale so that its words can be read.
#[must_use]
pub fn command(program: impl AsRef<OsStr>, arguments: &[OsString]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).env("LC_ALL", "C");
    command
}

/// Runs the command until it ends or the limit is over.
///
/// # Errors
/// [`ToolError`], except `Failed`: a status other than 0 is an answer here.
pub fn finish(mut command: Command, limit: Duration) -> Result<Finished, ToolError> {
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    // A group of its own, so that what the program started ends with it.
    command.process_group(0);
    let mut child = command.spawn().map_err(|source| not_started(&command, source))?;
    let output = collect(child.stdout.take());
    let errors = collect(child.stderr.take());
    let status = wait(&mut child, limit).map_err(|source| not_started(&command, source))?;
    let Some(status) = status else {
        return Err(ToolError::TooLong {
            program: name(&command),
            arguments: arguments(&command),
            limit,
        });
    };
    Ok(Finished {
        status,
        output: output.join().unwrap_or_default(),
        errors: errors.join().unwrap_or_default(),
    })
}

/// Runs the command and gives its standard output.
///
/// # Errors
/// [`ToolError`], a status other than 0 included.
pub fn output_of(command: Command, limit: Duration) -> Result<String, ToolError> {
    let (program, arguments) = (name(&command), arguments(&command));
    let finished = finish(command, limit)?;
    if finished.status.success() {
        return Ok(finished.output);
    }
    Err(ToolError::Failed {
        program,
        arguments,
        status: finished.status,
        errors: finished.errors.trim().to_owned(),
    })
}

/// Waits for the child; ends its group and gives `None` when the limit is over.
fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            end_group(child);
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(LOOK_EVERY);
    }
}

fn end_group(child: &mut Child) {
    let group = rustix::process::Pid::from_child(child);
    if rustix::process::kill_process_group(group, rustix::process::Signal::KILL).is_err() {
        // The group is gone; the wait that follows tells the rest.
        let _ = child.kill();
    }
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error is still worth having.
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn not_started(command: &Command, source: io::Error) -> ToolError {
    let program = name(command);
    match source.kind() {
        io::ErrorKind::NotFound => ToolError::Absent { program },
        _ => ToolError::Start { program, source },
    }
}

fn name(command: &Command) -> String {
    let program = Path::new(command.get_program());
    program.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn arguments(command: &Command) -> String {
    let words: Vec<_> = command.get_args().map(OsStr::to_string_lossy).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        command("sh", &["-c".into(), script.into()])
    }

    #[test]
    fn output_and_errors_are_kept_apart() {
        let finished =
            finish(shell("echo a; echo b >&2; exit 3"), Duration::from_secs(10)).unwrap();
        assert_eq!((finished.output.as_str(), finished.errors.as_str()), ("a\n", "b\n"));
        assert_eq!(finished.status.code(), Some(3));
    }

    #[test]
    fn a_program_that_hangs_is_ended_with_its_children() {
        let start = Instant::now();
        let error = finish(shell("sleep 60 & sleep 60"), Duration::from_millis(50)).unwrap_err();
        assert!(matches!(error, ToolError::TooLong { .. }), "{error}");
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn an_absent_program_is_told_from_a_failing_one() {
        let absent = output_of(command("no-such-program", &[]), Duration::from_secs(1));
        assert!(matches!(absent, Err(ToolError::Absent { .. })));
        let failed = output_of(shell("echo why >&2; false"), Duration::from_secs(10)).unwrap_err();
        assert!(failed.to_string().ends_with("why"), "{failed}");
    }
}
