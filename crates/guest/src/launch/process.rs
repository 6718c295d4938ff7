//! The QEMU process: its start, which ensures that it cannot outlive this process, and its end.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use numalab_host::die_with_parent;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Time within which a killed process is gone.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// QEMU's standard streams; its standard error always goes to a file.
#[derive(Debug)]
pub enum Streams {
    /// The user's terminal for input and output.
    Inherited(File),
    /// Neither input nor output.
    None(File),
}

/// A running QEMU, ended on drop.
#[derive(Debug)]
pub struct QemuProcess {
    pid: u32,
    handle: OwnedFd,
    ended: Receiver<io::Result<ExitStatus>>,
    status: Option<ExitStatus>,
}

impl QemuProcess {
    /// Starts QEMU in a helper thread that also waits for it: the kernel kills QEMU when the thread
    /// that started it ends.
    pub fn start(mut command: Command, streams: Streams) -> io::Result<Self> {
        die_with_parent(&mut command);
        match streams {
            Streams::Inherited(errors) => command.stderr(errors),
            Streams::None(errors) => {
                command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
                // Ctrl-C at the terminal is meant for this process, which ends QEMU in good order.
                command.process_group(0)
            }
        };
        let (tell_start, start) = mpsc::channel();
        let (tell_end, ended) = mpsc::channel();
        // This thread lives as long as QEMU, because PR_SET_PDEATHSIG follows the thread that
        // forked.
        thread::spawn(move || {
            let mut child = match command.spawn() {
                Ok(child) => child,
                Err(error) => {
                    let _ = tell_start.send(Err(error));
                    return;
                }
            };
            // A pidfd refers to this process even after its id has been reused.
            let handle = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
            let started = handle.map(|handle| (child.id(), handle));
            // The receiver exists as long as the caller does; without it, this process ends soon
            // too.
            let _ = tell_start.send(started.map_err(io::Error::from));
            let _ = tell_end.send(child.wait());
        });
        let (pid, handle) = start.recv().map_err(io::Error::other)??;
        Ok(Self { pid, handle, ended, status: None })
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns QEMU's exit status if it ends within the limit.
    pub fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = match self.ended.recv_timeout(limit) {
                Ok(Ok(status)) => Some(status),
                Ok(Err(_)) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    None
                }
            };
        }
        self.status
    }

    /// Kills QEMU and waits until it is gone.
    pub fn kill(&mut self) {
        if self.status.is_none() {
            // Fails if QEMU has ended by itself meanwhile.
            let _ = pidfd_send_signal(&self.handle, Signal::KILL);
            self.wait(KILL_LIMIT);
        }
    }
}

impl Drop for QemuProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet() -> Streams {
        Streams::None(File::create("/dev/null").unwrap())
    }

    #[test]
    fn a_process_is_gone_when_its_owner_drops_it() {
        let mut command = Command::new("sleep");
        command.arg("600");
        let process = QemuProcess::start(command, quiet()).unwrap();
        let entry = format!("/proc/{}/stat", process.pid());
        assert!(std::path::Path::new(&entry).exists());
        drop(process);
        assert!(!std::path::Path::new(&entry).exists());
    }

    #[test]
    fn a_missing_program_is_an_error() {
        let error = QemuProcess::start(Command::new("/no/such/program"), quiet()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
