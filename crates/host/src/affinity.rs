//! Pinning the calling thread to a cpu.

use std::marker::PhantomData;

use numalab_topology::{CpuId, CpuSet, NodeId};
use rustix::io::Errno;

use crate::error_class::ErrorClass;
use crate::syscall;

/// Why a thread could not be pinned or is not where it was pinned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AffinityError {
    /// The cpu does not exist, is offline, or this process may not use it.
    #[error(
        "cpu {cpu} cannot be used: offline, absent or outside this process's cpuset; cpus {allowed} can be"
    )]
    NotAllowed {
        /// The cpu asked for.
        cpu: CpuId,
        /// The cpus that the thread may use as far as is known.
        allowed: CpuSet,
    },
    /// The kernel refused for another reason.
    #[error(
        "cannot pin a thread to cpu {cpu}: {errno}; a seccomp filter may forbid sched_setaffinity"
    )]
    Refused {
        /// The cpu asked for.
        cpu: CpuId,
        /// The kernel's answer.
        errno: Errno,
    },
    /// The affinity cannot be read.
    #[error(
        "cannot read the thread's affinity: {errno}; a seccomp filter may forbid sched_getaffinity"
    )]
    Unreadable {
        /// The kernel's answer.
        errno: Errno,
    },
    /// What was read back differs from what was set.
    #[error(
        "pinned to cpu {cpu}, but the kernel reports affinity {affinity} and runs the thread on cpu {current}"
    )]
    NotApplied {
        /// The cpu asked for.
        cpu: CpuId,
        /// The affinity that the kernel reports.
        affinity: CpuSet,
        /// The cpu that the thread runs on.
        current: CpuId,
    },
}

impl AffinityError {
    /// The class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::NotAllowed { .. } => ErrorClass::BadInput,
            Self::Refused { .. } | Self::Unreadable { .. } => ErrorClass::Lacking,
            Self::NotApplied { .. } => ErrorClass::Failed,
        }
    }
}

/// Where a thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The cpu.
    pub cpu: CpuId,
    /// Its node.
    pub node: NodeId,
}

/// Where the calling thread runs now, by `getcpu(2)`.
#[must_use]
pub fn current_place() -> Place {
    let (cpu, node) = syscall::cpu_and_node();
    Place { cpu, node }
}

/// The calling thread's affinity, for any number of cpus.
///
/// # Errors
/// [`AffinityError::Unreadable`] if the kernel does not tell.
pub fn current_affinity() -> Result<CpuSet, AffinityError> {
    syscall::affinity(0).map_err(|errno| AffinityError::Unreadable { errno })
}

/// The affinity of any thread by its number, for any number of cpus.
///
/// # Errors
/// The kernel's answer: `ESRCH` for a thread that is not there.
pub fn thread_affinity(thread: u32) -> Result<CpuSet, Errno> {
    syscall::affinity(thread)
}

/// Sets the affinity of any thread by its number; the kernel leaves out cpus that are
/// offline or outside its cpuset.
///
/// # Errors
/// The kernel's answer: `EINVAL` if no cpu is left, `EPERM` for another user's thread.
pub fn set_thread_affinity(thread: u32, cpus: &CpuSet) -> Result<(), Errno> {
    syscall::set_affinity(thread, cpus)
}

/// A thread pinned to one cpu; dropping it gives the thread its former affinity back.
/// It cannot leave its thread.
#[derive(Debug)]
pub struct Pinned {
    place: Place,
    affinity: CpuSet,
    former: CpuSet,
    own_thread: PhantomData<*const ()>,
}

/// Pins the calling thread to `cpu`, and reads back that it is so.
///
/// # Errors
/// [`AffinityError::NotAllowed`] if the cpu is offline, absent or outside the cpuset,
/// [`AffinityError::NotApplied`] if the kernel reports another affinity or cpu,
/// [`AffinityError::Refused`] and [`AffinityError::Unreadable`] for a forbidden call.
pub fn pin(cpu: CpuId) -> Result<Pinned, AffinityError> {
    let former = current_affinity()?;
    match syscall::set_affinity(0, &CpuSet::from_iter([cpu])) {
        Ok(()) => {}
        Err(Errno::INVAL) => {
            let allowed = former;
            return Err(AffinityError::NotAllowed { cpu, allowed });
        }
        Err(errno) => return Err(AffinityError::Refused { cpu, errno }),
    }
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
    /// The cpu.
    #[must_use]
    pub fn cpu(&self) -> CpuId {
        self.place.cpu
    }

    /// The node of the cpu, as the kernel said.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.place.node
    }

    /// The affinity as it was read back.
    #[must_use]
    pub fn affinity(&self) -> &CpuSet {
        &self.affinity
    }

    /// Reads back once more that the thread is pinned and runs where it should:
    /// an administrator's `taskset` or a cpuset change moves it.
    ///
    /// # Errors
    /// [`AffinityError::NotApplied`] if it is elsewhere, [`AffinityError::Unreadable`]
    /// if the kernel does not tell.
    pub fn verify(&self) -> Result<(), AffinityError> {
        check(self.place.cpu, &current_affinity()?, current_place().cpu)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // A former cpu can have gone offline meanwhile: then the kernel refuses, and
        // the thread stays where it is, which harms nobody.
        let _ = syscall::set_affinity(0, &self.former);
    }
}
