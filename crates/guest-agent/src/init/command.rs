//! Runs the job's command and streams its output.

use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use numalab_marks::mark;

use super::{In, InitError, Out, lock, send, step, terminal};
use crate::protocol::{Exit, Job, Message, Stream};

pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin";
/// A shell's exit codes for a command that does not exist and one that cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_RUNNABLE: u8 = 126;
const READ_BYTES: usize = 32 * 1024;

/// Runs the command to its end. Later messages from the host are left to the caller.
pub(super) fn run(job: &Job, input: &In, out: &Out) -> Result<Exit, InitError> {
    if job.charged {
        mark::begin();
    }
    match command(job).spawn() {
        Ok(child) => follow(child, job, input, out),
        Err(error) => {
            end_charging(job);
            let program = job.command.first().map_or("", String::as_str);
            send(out, &Message::Complaint(format!("{program}: {error} (in the guest)")))?;
            let missing = error.kind() == io::ErrorKind::NotFound;
            Ok(Exit::Code(if missing { NOT_FOUND } else { NOT_RUNNABLE }))
        }
    }
}

fn end_charging(job: &Job) {
    if job.charged {
        mark::end();
    }
}

fn command(job: &Job) -> Command {
    let mut words = job.command.iter();
    let mut command = if job.terminal {
        let mut command = Command::new("/proc/self/exe");
        command.arg0(terminal::HELPER_NAME);
        command
    } else {
        let mut command = Command::new(words.next().map_or("", String::as_str));
        let input = if job.input { Stdio::piped() } else { Stdio::null() };
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    command.args(words).env_clear();
    command.envs([("PATH", PATH), ("HOME", "/root"), ("TERM", "linux")]);
    command.envs(job.environment.iter().map(|(name, value)| (name, value)));
    command.current_dir(job.directory.as_deref().unwrap_or("/root"));
    command
}

fn follow(mut child: Child, job: &Job, input: &In, out: &Out) -> Result<Exit, InitError> {
    if let Some(pipe) = child.stdin.take() {
        feed(pipe, input);
    }
    let outputs = [
        child.stdout.take().map(|pipe| stream(pipe, Stream::Out, out)),
        child.stderr.take().map(|pipe| stream(pipe, Stream::Err, out)),
    ];
    let status = child.wait().map_err(step("wait for the command"))?;
    end_charging(job);
    // A process that still has the outputs open would keep the threads waiting forever.
    super::end_other_processes();
    for thread in outputs.into_iter().flatten() {
        // A thread ends early only if the channel is closed, which the next send reports.
        let _ = thread.join();
    }
    Ok(exit_of(status))
}

/// Passes the host's input to the command, to its end. A command that stops reading loses the rest.
/// The thread ends with the channel, or with this machine.
fn feed(mut pipe: impl Write + Send + 'static, input: &In) {
    let input = Arc::clone(input);
    thread::spawn(move || {
        let mut input = input.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        while let Ok(Message::Input(bytes)) = Message::receive(&mut input) {
            if bytes.is_empty() || pipe.write_all(&bytes).is_err() {
                break;
            }
        }
    });
}

/// Sends the output of the pipe as it arrives.
fn stream(mut pipe: impl Read + Send + 'static, which: Stream, out: &Out) -> JoinHandle<()> {
    let out = Arc::clone(out);
    thread::spawn(move || {
        let mut bytes = vec![0; READ_BYTES];
        while let Ok(count @ 1..) = pipe.read(&mut bytes) {
            let message = Message::Output(which, bytes[..count].to_vec());
            if message.send(&mut lock(&out)).is_err() {
                break;
            }
        }
    })
}

pub(crate) fn exit_of(status: ExitStatus) -> Exit {
    let small = |number: i32| u8::try_from(number & 0xff).unwrap_or(u8::MAX);
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(small(code)),
        (None, signal) => Exit::Signal(small(signal.unwrap_or_default())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{FrameReader, FrameWriter};
    use std::sync::Mutex;

    #[test]
    fn statuses_become_codes_and_signals() {
        assert_eq!(exit_of(ExitStatus::from_raw(3 << 8)), Exit::Code(3));
        assert_eq!(exit_of(ExitStatus::from_raw(9)), Exit::Signal(9));
    }

    #[test]
    fn a_missing_command_is_127_and_reported_by_name() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let out: Out = Arc::new(Mutex::new(FrameWriter::new(file.reopen().unwrap())));
        let job = Job { directory: Some("/".to_owned()), ..Job::new(["no-such-program"]) };
        let input: In = Arc::new(Mutex::new(FrameReader::new(file.reopen().unwrap())));
        assert_eq!(run(&job, &input, &out).unwrap(), Exit::Code(127));
        let mut reader = FrameReader::new(file.reopen().unwrap());
        let Message::Complaint(text) = Message::receive(&mut reader).unwrap() else {
            panic!("no complaint");
        };
        assert!(text.starts_with("no-such-program: "), "{text}");
    }
}
