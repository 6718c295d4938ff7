//! perf_event_open(2) and its ioctls.

use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use perf_event_open_sys as perf;
use perf_event_open_sys::bindings as sys;
use rustix::io::Errno;

fn last_errno() -> Errno {
    let error = std::io::Error::last_os_error();
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

/// Opens an event of a thread and its descendants on one cpu, in the group of `leader` if there is
/// one.
pub(super) fn open(
    mut attr: sys::perf_event_attr,
    thread: u32,
    cpu: u32,
    leader: Option<BorrowedFd<'_>>,
) -> Result<OwnedFd, Errno> {
    let thread = libc::pid_t::try_from(thread).map_err(|_| Errno::SRCH)?;
    let cpu = libc::c_int::try_from(cpu).map_err(|_| Errno::NODEV)?;
    let group = leader.map_or(-1, |leader| leader.as_raw_fd());
    let flags = sys::PERF_FLAG_FD_CLOEXEC.into();
    attr.size = u32::try_from(size_of_val(&attr)).unwrap_or(0);
    // SAFETY: `attr` is a whole structure of ours with its size in it, which the kernel reads, and
    // into which it may write the size that it expects; the other arguments are numbers.
    let opened = unsafe { perf::perf_event_open(&raw mut attr, thread, cpu, group, flags) };
    if opened < 0 {
        return Err(last_errno());
    }
    // SAFETY: the kernel has just given this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(opened) })
}

/// Returns the identifier that the event's records carry.
pub(super) fn identifier(event: &OwnedFd) -> Result<u64, Errno> {
    let mut number = 0_u64;
    // SAFETY: the descriptor is open, and the kernel writes one number to a valid place.
    match unsafe { perf::ioctls::ID(event.as_raw_fd(), &raw mut number) } {
        0 => Ok(number),
        _ => Err(last_errno()),
    }
}

/// Redirects an event into the ring of another event of the same cpu.
pub(super) fn write_into(event: &OwnedFd, ring_of: &OwnedFd) -> Result<(), Errno> {
    // SAFETY: both descriptors are open; nothing else is passed.
    match unsafe { perf::ioctls::SET_OUTPUT(event.as_raw_fd(), ring_of.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(last_errno()),
    }
}
