//! Calls that move data: what they use, how long that takes, and when pipes let them go on.

use std::mem::MaybeUninit;

use numalab_memory_model::cost::ps;
use numalab_memory_model::machine::SystemCall;
use numalab_memory_model::space::PAGE_BYTES;

use super::super::cached_files::Part;
use super::super::pipes::Pipe;
use super::super::syscalls::Call;
use super::{Pending, Program, World};

/// The source or destination of the data that a call moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moves {
    /// A file with its length, and the place in it.
    File {
        inode: u64,
        bytes: u64,
        at: u64,
    },
    Pipe(Pipe),
    Socket,
    Terminal,
    Other,
}

impl Moves {
    /// Returns what a call uses; `None` if it moves no data, or has no valid descriptor.
    pub fn of(call: Call, [descriptor, .., at, _, _]: &[u64; 6]) -> Option<Self> {
        let at = match call {
            Call::Read | Call::Write | Call::Transfer => None,
            Call::ReadAt | Call::WriteAt => Some(*at),
            _ => return None,
        };
        let descriptor = i32::try_from(*descriptor).ok()?;
        let about = status(descriptor)?;
        Some(match about.st_mode & libc::S_IFMT {
            libc::S_IFREG => {
                // SAFETY: takes only numbers.
                let now = || unsafe { libc::lseek(descriptor, 0, libc::SEEK_CUR) };
                let at = at.or_else(|| u64::try_from(now()).ok()).unwrap_or(0);
                Self::File { inode: about.st_ino, bytes: bytes(&about), at }
            }
            libc::S_IFIFO => {
                // SAFETY: takes only numbers.
                let capacity = unsafe { libc::fcntl(descriptor, libc::F_GETPIPE_SZ) };
                let capacity = u64::try_from(capacity).unwrap_or(0);
                Self::Pipe(Pipe { inode: about.st_ino, capacity })
            }
            libc::S_IFSOCK => Self::Socket,
            // SAFETY: takes only a number.
            libc::S_IFCHR if unsafe { libc::isatty(descriptor) } == 1 => Self::Terminal,
            _ => Self::Other,
        })
    }

    /// Returns true if such a call may wait for another process.
    pub fn may_wait(self) -> bool {
        matches!(self, Self::Pipe(_) | Self::Socket | Self::Terminal)
    }
}

/// Returns what is known of a descriptor's file.
fn status(descriptor: i32) -> Option<libc::stat> {
    let mut about = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the kernel fills the structure if it returns 0.
    unsafe { (libc::fstat(descriptor, about.as_mut_ptr()) == 0).then(|| about.assume_init()) }
}

fn bytes(about: &libc::stat) -> u64 {
    u64::try_from(about.st_size).unwrap_or(0)
}

/// Returns the time of a finished call that moved this number of bytes. If the kind is not known, it is
/// an ordinary call.
pub(super) fn takes(pending: &Pending, moved: u64) -> SystemCall {
    let [descriptor, ..] = pending.arguments;
    match (pending.moves, pending.call) {
        (Some(Moves::File { .. }), Call::Read | Call::ReadAt) => SystemCall::Read(moved),
        (Some(Moves::File { bytes: before, .. }), Call::Write | Call::WriteAt) => {
            let now = i32::try_from(descriptor).ok().and_then(status);
            let [now, before] =
                [now.map_or(0, |of| bytes(&of)), before].map(|bytes| bytes.div_ceil(PAGE_BYTES));
            SystemCall::Write(moved, now.saturating_sub(before))
        }
        (Some(Moves::Pipe(_)), Call::Read | Call::Write) => SystemCall::Pipe(moved),
        _ => SystemCall::Move(moved),
    }
}

impl Program {
    /// Records that a thread begins to write to a pipe, in pieces that fit into it.
    pub(super) fn writes_to_pipe(&self, pending: &Pending) {
        let (Some(Moves::Pipe(pipe)), Call::Write) = (pending.moves, pending.call) else { return };
        let [_, _, bytes, ..] = pending.arguments;
        let piece = pipe.capacity.max(PAGE_BYTES);
        // What is beyond the times that a pipe remembers is too early.
        for begin in (0..bytes).step_by(usize::try_from(piece).unwrap_or(usize::MAX)).take(64) {
            let end = bytes.min(begin + piece);
            let ready_ps = pending.now_ps + self.pipe_ps(end);
            pipe.writes(self.report(), end - begin, ready_ps);
        }
    }

    /// Returns the time at which a call on a pipe was woken; 0 if it did not wait.
    pub(super) fn pipe_goes_on_ps(&self, pending: &Pending, value: i64) -> u64 {
        let Some(Moves::Pipe(pipe)) = pending.moves else { return 0 };
        let moved = u64::try_from(value).unwrap_or(0);
        let calls = self.engine.get().and_then(|engine| engine.arguments.machine.calls);
        let wake_ps = calls.map_or(0, |calls| ps(calls.wake_ns));
        match pending.call {
            Call::Read if moved > 0 => {
                let times = (pending.now_ps, wake_ps, self.pipe_ps(moved));
                pipe.read(self.report(), moved, times)
            }
            Call::Write => {
                let [_, _, asked, ..] = pending.arguments;
                pipe.wrote(self.report(), (asked, moved), pending.now_ps, wake_ps)
            }
            _ => 0,
        }
    }

    /// Returns the time in which this number of bytes is moved into a pipe or out of it.
    fn pipe_ps(&self, bytes: u64) -> u64 {
        let calls = self.engine.get().and_then(|engine| engine.arguments.machine.calls);
        calls.map_or(0, |calls| ps(calls.takes_ns(SystemCall::Pipe(bytes))))
    }

    fn report(&self) -> Option<&str> {
        self.engine.get()?.arguments.report.as_deref()
    }
}

impl World {
    /// Lets the lines that a call moved between memory and a file pass the caches.
    pub(super) fn moves_lines(&mut self, seat: usize, pending: &Pending, moved: u64) {
        let Some(Moves::File { inode, at, .. }) = pending.moves else { return };
        let writes = matches!(pending.call, Call::Write | Call::WriteAt);
        let [_, address, ..] = pending.arguments;
        if pending.call != Call::Transfer {
            self.moves_part(seat, Part { inode, at, address, bytes: moved, writes });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;

    use super::*;

    fn arguments(descriptor: i32, at: u64) -> [u64; 6] {
        [u64::try_from(descriptor).unwrap(), 0, 0, at, 0, 0]
    }

    #[test]
    fn a_call_takes_the_time_of_what_its_descriptor_stands_for() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[1; 5000]).unwrap();
        let took = |call, file: &File, more: u64| {
            let arguments = arguments(file.as_raw_fd(), 0);
            let moves = Moves::of(call, &arguments);
            let pending = Pending { call, arguments, moves, now_ps: 0, until_ps: None };
            file.set_len(file.metadata().unwrap().len() + more).unwrap();
            takes(&pending, 700)
        };
        assert_eq!(took(Call::Read, &file, 0), SystemCall::Read(700));
        assert_eq!(took(Call::WriteAt, &file, 3000), SystemCall::Write(700, 0), "in the same page");
        assert_eq!(took(Call::Write, &file, 9000), SystemCall::Write(700, 3));
        assert_eq!(
            took(Call::Transfer, &file, 0),
            SystemCall::Move(700),
            "parts in several places"
        );
    }

    #[test]
    fn a_call_on_a_pipe_or_a_socket_may_wait_and_one_on_a_file_does_not() {
        let file = File::open("/proc/self/exe").unwrap();
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let (pipe, _writer) = std::io::pipe().unwrap();
        let of = |call, descriptor, at| Moves::of(call, &arguments(descriptor, at));
        let read = of(Call::ReadAt, file.as_raw_fd(), 77);
        assert!(matches!(read, Some(Moves::File { at: 77, bytes, .. }) if bytes > 0), "{read:?}");
        assert!(read.is_some_and(|of| !of.may_wait()));
        assert_eq!(of(Call::Transfer, socket.as_raw_fd(), 0), Some(Moves::Socket));
        let reads = of(Call::Read, pipe.as_raw_fd(), 0);
        assert!(matches!(reads, Some(Moves::Pipe(Pipe { capacity: 4096.., .. }))), "{reads:?}");
        assert!(reads.is_some_and(Moves::may_wait));
        assert_eq!(of(Call::Read, 9_999, 0), None, "there is no such file");
        assert_eq!(of(Call::Map, file.as_raw_fd(), 0), None);
    }
}
