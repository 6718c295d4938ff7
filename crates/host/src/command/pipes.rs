//! The parent's ends of a command's pipes, read and written without blocking.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use rustix::event::{PollFd, PollFlags};

/// Bytes kept of each output; the rest is read and dropped, so that the command never blocks.
pub(super) const OUTPUT_BYTES: usize = 8 << 20;
/// Largest capacity of a pipe without privileges (`/proc/sys/fs/pipe-max-size`).
const PIPE_BYTES: usize = 1 << 20;
const READ_BYTES: usize = 64 << 10;

pub(super) struct Pipes<'a> {
    input: Option<ChildStdin>,
    rest: &'a [u8],
    pub(super) stdout: Output<ChildStdout>,
    pub(super) stderr: Output<ChildStderr>,
}

/// The kept output of one pipe.
pub(super) struct Output<P> {
    pipe: Option<P>,
    kept: Vec<u8>,
    pub(super) dropped_bytes: usize,
}

impl<'a> Pipes<'a> {
    pub(super) fn of(child: &mut Child, input: &'a [u8]) -> io::Result<Self> {
        let pipes = Self {
            input: child.stdin.take(),
            rest: input,
            stdout: Output::of(child.stdout.take())?,
            stderr: Output::of(child.stderr.take())?,
        };
        pipes.input.as_ref().map_or(Ok(()), not_blocking)?;
        Ok(pipes)
    }

    /// Returns the pipes that are still open, for poll(2).
    pub(super) fn polled(&self) -> Vec<PollFd<'_>> {
        let outputs = [self.stdout.fd(), self.stderr.fd()].into_iter().flatten();
        let input =
            self.input.as_ref().map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::OUT));
        outputs.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).chain(input).collect()
    }

    /// Reads and writes until every pipe would block.
    pub(super) fn serve(&mut self) {
        self.write();
        self.stdout.read();
        self.stderr.read();
    }

    /// Reads the data that is still in the pipes. A process that has left the command's group may
    /// hold them open forever, and is not waited for.
    pub(super) fn drain(&mut self) {
        self.input = None;
        for _ in 0..PIPE_BYTES / READ_BYTES {
            self.stdout.read();
            self.stderr.read();
        }
    }

    fn write(&mut self) {
        let Some(pipe) = &mut self.input else { return };
        match pipe.write(self.rest) {
            Ok(count) => self.rest = &self.rest[count..],
            Err(error) if is_for_later(&error) => return,
            // EPIPE: the command reads no more input. Its status or messages say whether that is a
            // failure.
            Err(_) => self.rest = &[],
        }
        if self.rest.is_empty() {
            self.input = None;
        }
    }
}

impl<P: Read + AsFd> Output<P> {
    fn of(pipe: Option<P>) -> io::Result<Self> {
        pipe.as_ref().map_or(Ok(()), not_blocking)?;
        Ok(Self { pipe, kept: Vec::new(), dropped_bytes: 0 })
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    fn read(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        let mut bytes = [0; READ_BYTES];
        match pipe.read(&mut bytes) {
            Ok(count @ 1..) => {
                let kept = count.min(OUTPUT_BYTES - self.kept.len());
                self.kept.extend_from_slice(&bytes[..kept]);
                self.dropped_bytes += count - kept;
            }
            Err(error) if is_for_later(&error) => {}
            // The reader of the output notices the truncation.
            Ok(_) | Err(_) => self.pipe = None,
        }
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
    }
}

fn not_blocking(pipe: &impl AsFd) -> io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(pipe, true)?)
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
