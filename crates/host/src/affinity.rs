//! Pins the calling thread to a cpu and checks that the kernel did so.

use std::marker::PhantomData;

use numalab_topology::{CpuId, CpuSet, NodeId};
use rustix::io::Errno;

use crate::error_class::{Classed, ErrorClass};
use crate::syscall;

/// Reason why a thread could not be pinned, or is not where it was pinned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AffinityError {
    #[error(
        "cpu {cpu} is offline, absent or outside this process's cpuset; expected one of cpus \
         {allowed}"
    )]
    NotAllowed {
        cpu: CpuId,
        /// The cpus that the thread may use, as far as the kernel says.
        allowed: CpuSet,
    },
    #[error(
        "cannot pin a thread to cpu {cpu}: {errno}; a seccomp filter may forbid sched_setaffinity"
    )]
    Refused { cpu: CpuId, errno: Errno },
    #[error(
        "cannot read the thread's affinity: {errno}; a seccomp filter may forbid sched_getaffinity"
    )]
    Unreadable { errno: Errno },
    #[error(
        "pinned to cpu {cpu}, but the kernel reports affinity {affinity} and runs the thread on cpu {current}: its cpuset may have changed"
    )]
    NotApplied {
        cpu: CpuId,
        affinity: CpuSet,
        /// The cpu that the thread runs on.
        current: CpuId,
    },
}

impl Classed for AffinityError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::NotAllowed { .. } => ErrorClass::BadInput,
            Self::Refused { .. } | Self::Unreadable { .. } => ErrorClass::Lacking,
            Self::NotApplied { .. } => ErrorClass::Failed,
        }
    }
}

/// A cpu and its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub cpu: CpuId,
    pub node: NodeId,
}

/// Returns the cpu and node on which the calling thread runs now (`getcpu(2)`).
pub fn current_place() -> Place {
    let (cpu, node) = syscall::cpu_and_node();
    Place { cpu, node }
}

/// Returns the calling thread's affinity, for any number of cpus.
///
/// # Errors
/// [`AffinityError::Unreadable`] if `sched_getaffinity(2)` fails.
pub fn current_affinity() -> Result<CpuSet, AffinityError> {
    syscall::affinity(0).map_err(|errno| AffinityError::Unreadable { errno })
}

/// Returns the affinity of a thread by its id (`gettid(2)`), for any number of cpus.
///
/// # Errors
/// The kernel's error: `ESRCH` for a thread that does not exist.
pub fn thread_affinity(thread: u32) -> Result<CpuSet, Errno> {
    syscall::affinity(thread)
}

/// Sets the affinity of a thread by its id (`gettid(2)`). The kernel leaves out cpus that are
/// offline or outside the thread's cpuset.
///
/// # Errors
/// The kernel's error: `EINVAL` if no cpu is left, `EPERM` for another user's thread.
pub fn set_thread_affinity(thread: u32, cpus: &CpuSet) -> Result<(), Errno> {
    syscall::set_affinity(thread, cpus)
}

/// A thread pinned to one cpu. Dropping it restores the thread's former affinity, which is why it
/// is not `Send`.
#[derive(Debug)]
pub struct Pinned {
    place: Place,
    affinity: CpuSet,
    former: CpuSet,
    own_thread: PhantomData<*const ()>,
}

/// Pins the calling thread to `cpu` and checks by reading the affinity back.
///
/// # Errors
/// [`AffinityError::NotAllowed`] if the cpu is offline, absent or outside the cpuset,
/// [`AffinityError::NotApplied`] if the kernel reports another affinity or cpu,
/// [`AffinityError::Refused`] and [`AffinityError::Unreadable`] for a forbidden call.
pub fn pin(cpu: CpuId) -> Result<Pinned, AffinityError> {
    let former = current_affinity()?;
    match syscall::set_affinity(0, &CpuSet::from_iter([cpu])) {
        Ok(()) => {}
        // The only error that concerns the cpu itself (sched_setaffinity(2)).
        Err(Errno::INVAL) => {
            let allowed = former;
            return Err(AffinityError::NotAllowed { cpu, allowed });
        }
        Err(errno) => return Err(AffinityError::Refused { cpu, errno }),
    }
    // Constructed before the checks, so that an error restores the former affinity.
    let mut pinned =
        Pinned { place: current_place(), affinity: CpuSet::new(), former, own_thread: PhantomData };
    pinned.affinity = current_affinity()?;
    check(cpu, &pinned.affinity, pinned.place.cpu)?;
    Ok(pinned)
}

fn check(cpu: CpuId, affinity: &CpuSet, current: CpuId) -> Result<(), AffinityError> {
    if current == cpu && affinity.len() == 1 && affinity.contains(cpu) {
        return Ok(());
    }
    let affinity = affinity.clone();
    Err(AffinityError::NotApplied { cpu, affinity, current })
}

impl Pinned {
    pub fn cpu(&self) -> CpuId {
        self.place.cpu
    }

    /// Returns the node of the cpu, as `getcpu(2)` reported it.
    pub fn node(&self) -> NodeId {
        self.place.node
    }

    /// Returns the affinity that was read back.
    pub fn affinity(&self) -> &CpuSet {
        &self.affinity
    }

    /// Returns true if the thread runs on its cpu now; needs no system call where the C library has
    /// none.
    pub fn is_here(&self) -> bool {
        syscall::cpu() == self.place.cpu
    }

    /// Checks again that the thread is pinned and runs on its cpu: `taskset` or a change of the
    /// cpuset can move it.
    ///
    /// # Errors
    /// [`AffinityError::NotApplied`] if the thread has been moved, [`AffinityError::Unreadable`] if
    /// the kernel does not report its affinity.
    pub fn verify(&self) -> Result<(), AffinityError> {
        check(self.place.cpu, &current_affinity()?, current_place().cpu)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // Fails if the former cpus have gone offline since. The thread then stays pinned, because
        // drop cannot return an error.
        let _ = syscall::set_affinity(0, &self.former);
    }
}
