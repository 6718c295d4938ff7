//! A command that waits before exec until a caller is ready to observe it.

use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::thread;

use rustix::io::{Errno, read, retry_on_intr, write};
use rustix::pipe::{PipeFlags, pipe_with};

/// Byte that lets the waiting child call exec; end of file makes it exit.
const GO: u8 = b'+';
const END: u8 = b'-';

/// Starts a command and calls `ready` with its process id while it waits before exec. The command
/// runs if `ready` succeeds, and exits otherwise.
///
/// # Errors
/// As [`Command::spawn`]. If `ready` fails, its error is the inner result, and there is no child.
///
/// # Panics
/// If `ready` panics.
pub fn spawn_held<T: Send, E: Send>(
    mut command: Command,
    ready: impl FnOnce(u32) -> Result<T, E> + Send,
) -> io::Result<Result<(Child, T), E>> {
    let (number_in, number_out) = pipe_with(PipeFlags::CLOEXEC)?;
    let (word_in, word_out) = pipe_with(PipeFlags::CLOEXEC)?;
    let own_word_out = word_out.as_raw_fd();
    // SAFETY: 1. Between fork and exec the closure makes system calls alone: it allocates nothing and
    // takes no lock. 2. `own_word_out` is the child's copy of `word_out`, which the helper keeps open
    // until it has read the number that is written afterwards: nothing else has that number.
    unsafe {
        command.pre_exec(move || {
            // The child's copy of the parent's end would keep the pipe open, and the child would
            // wait forever if this process dies or panics.
            rustix::io::close(own_word_out);
            let number = rustix::process::getpid().as_raw_nonzero().get();
            write(&number_out, &number.to_ne_bytes())?;
            let mut word = [END];
            loop {
                match read(&word_in, &mut word) {
                    Err(Errno::INTR) => {}
                    Ok(_) if word == [GO] => return Ok(()),
                    Ok(_) => return Err(Errno::CANCELED.into()),
                    Err(errno) => return Err(errno.into()),
                }
            }
        });
    }
    // `spawn` returns only after exec, so another thread has to release the child.
    thread::scope(|scope| {
        let helper = scope.spawn(move || {
            let mut number = [0; 4];
            // End of file: no process was forked.
            match retry_on_intr(|| read(&number_in, &mut number)) {
                Ok(read) if read == number.len() => {}
                _ => return None,
            }
            let made = ready(u32::from_ne_bytes(number));
            let word = if made.is_ok() { GO } else { END };
            let _ = write(&word_out, &[word]);
            Some(made)
        });
        let spawned = command.spawn();
        // The command holds the child's ends of the pipes; dropping them ends the helper's read.
        drop(command);
        finish(spawned, helper)
    })
}

fn finish<T, E>(
    spawned: io::Result<Child>,
    helper: thread::ScopedJoinHandle<'_, Option<Result<T, E>>>,
) -> io::Result<Result<(Child, T), E>> {
    let made = helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    match (spawned, made) {
        (Ok(child), Some(Ok(made))) => Ok(Ok((child, made))),
        (_, Some(Err(error))) => Ok(Err(error)),
        (Err(error), _) => Err(error),
        (Ok(_), None) => {
            Err(io::Error::new(ErrorKind::BrokenPipe, "the command started without waiting"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::proc::Stat;

    #[test]
    fn a_command_is_observed_before_exec_and_then_runs() {
        let mut command = Command::new("sh");
        command.args(["-c", "exit 7"]);
        let (mut child, name) = spawn_held(command, |process| {
            thread::sleep(Duration::from_millis(20));
            let stat = Stat::of(process).unwrap();
            assert_eq!(stat.parent, std::process::id());
            Ok::<_, ()>((process, stat.name))
        })
        .unwrap()
        .unwrap();
        assert_eq!(name.0, child.id());
        assert_ne!(name.1, "sh", "it is not the program yet");
        assert_eq!(child.wait().unwrap().code(), Some(7));
    }

    #[test]
    fn a_command_does_not_run_when_its_observer_fails() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", &format!("echo ran >{}", file.path().display())]);
        let failed = spawn_held(command, |_| Err::<(), _>("not ready")).unwrap();
        assert_eq!(failed.map(drop), Err("not ready"));
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "");
    }

    #[test]
    fn a_command_does_not_wait_forever_if_its_observer_panics() {
        let (sender, receiver) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let held =
                || spawn_held(Command::new("true"), |_| -> Result<(), ()> { panic!("meant") });
            sender.send(std::panic::catch_unwind(held).is_err())
        });
        assert_eq!(receiver.recv_timeout(Duration::from_secs(30)), Ok(true));
    }

    #[test]
    fn a_missing_program_gives_the_systems_error() {
        let spawned = spawn_held(Command::new("/no/such/program"), |_| Ok::<_, ()>(()));
        assert_eq!(spawned.unwrap_err().kind(), ErrorKind::NotFound);
    }
}
