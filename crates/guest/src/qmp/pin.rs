//! Pins a QEMU's threads to host cpus, and reads their affinity back.

use std::fmt;

use numalab_host::proc::{Stat, field, threads};
use numalab_host::{Classed, ErrorClass, Root, set_thread_affinity, thread_affinity};
use numalab_topology::{CpuId, CpuSet, Machine};

use super::client::{QmpClient, QmpError};
use super::plan::{PinPlan, PlanError};
use super::threads::{IoThread, Vcpu, io_threads, vcpus};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinReport {
    /// The process id of the QEMU.
    pub process: u32,
    /// The vCPUs in the plan.
    pub vcpus: Vec<PinnedVcpu>,
    /// The other threads of QEMU: its main loop, I/O, workers.
    pub helpers: Vec<HelperThread>,
}

impl fmt::Display for PinReport {
    /// Writes a line for each thread with its cpus.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for PinnedVcpu { vcpu, affinity, runs_on } in &self.vcpus {
            let node = vcpu.node.map(|node| format!(" of node {node}")).unwrap_or_default();
            let last = runs_on.map(|cpu| format!(", last on {cpu}")).unwrap_or_default();
            let (index, thread) = (vcpu.index, vcpu.thread);
            writeln!(f, "vCPU {index}{node}: thread {thread} on cpus {affinity}{last}")?;
        }
        for HelperThread { name, thread, affinity } in &self.helpers {
            writeln!(f, "{name}: thread {thread} on cpus {affinity}")?;
        }
        Ok(())
    }
}

/// A vCPU with its affinity, read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedVcpu {
    pub vcpu: Vcpu,
    /// The host cpus on which the vCPU's thread may run, as read back.
    pub affinity: CpuSet,
    /// The host cpu on which the thread ran last.
    pub runs_on: Option<CpuId>,
}

/// Another thread of QEMU, read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelperThread {
    /// The thread's name in the kernel, or the I/O thread's name.
    pub name: String,
    pub thread: u32,
    /// The host cpus on which the thread may run, as read back.
    pub affinity: CpuSet,
}

/// Reason why threads could not be pinned.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// QEMU did not answer.
    #[error(transparent)]
    Qmp(#[from] QmpError),
    /// The plan does not fit the guest or the host.
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(
        "QEMU runs on another machine, so its thread ids mean nothing here; run this on QEMU's host"
    )]
    Elsewhere,
    /// The thread does not exist here, or is not one of a QEMU: the QEMU is on another machine or in
    /// another pid namespace.
    #[error("vCPU {vcpu}: no thread {thread} of a QEMU on this machine; run this on QEMU's host")]
    NotHere {
        vcpu: u32,
        /// The thread that QEMU named.
        thread: u32,
    },
    #[error("thread {thread} on cpus {cpus}: {source}")]
    Refused { thread: u32, cpus: CpuSet, source: std::io::Error },
    /// The kernel kept another affinity.
    #[error("thread {thread}: wanted cpus {wanted}, kernel kept {kept}")]
    NotKept { thread: u32, wanted: CpuSet, kept: CpuSet },
}

impl Classed for PinError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Plan(_) => ErrorClass::BadInput,
            _ => ErrorClass::Failed,
        }
    }
}

/// Pins the vCPUs by the plan, and every other thread of that QEMU to `helpers` if given.
/// Each affinity is read back.
pub fn apply(
    qemu: &mut QmpClient,
    plan: &PinPlan,
    helpers: Option<&CpuSet>,
    host: &Machine,
) -> Result<PinReport, PinError> {
    if !qemu.is_here {
        return Err(PinError::Elsewhere);
    }
    let all = vcpus(qemu)?;
    let placement = plan.placement(&all, host)?;
    let process = process_of(&all)?;
    let named = io_threads(qemu)?;
    let mut pinned = Vec::new();
    for (vcpu, cpus) in placement {
        pinned.push(PinnedVcpu {
            vcpu,
            affinity: pin(vcpu.thread, &cpus)?,
            runs_on: runs_on(process, vcpu.thread),
        });
    }
    let helpers = pin_helpers(process, &all, &named, helpers)?;
    Ok(PinReport { process, vcpus: pinned, helpers })
}

impl PinReport {
    /// Reads the affinity of the same threads again.
    ///
    /// # Errors
    /// [`PinError::Refused`] if a vCPU's thread has ended.
    pub fn observed(mut self) -> Result<Self, PinError> {
        for pinned in &mut self.vcpus {
            pinned.affinity = affinity(pinned.vcpu.thread)?;
            pinned.runs_on = runs_on(self.process, pinned.vcpu.thread);
        }
        Ok(self)
    }
}

/// Returns the process that the vCPUs' threads belong to.
fn process_of(vcpus: &[Vcpu]) -> Result<u32, PinError> {
    let Some(first) = vcpus.first() else {
        return Err(PlanError::NoVcpu { vcpu: 0, count: 0 }.into());
    };
    // QMP gives only thread ids; the other threads are found through their process.
    let process = |vcpu: &Vcpu| -> Option<u32> {
        let status = Root::live().document(&format!("proc/{}/status", vcpu.thread)).ok()?;
        field(&status, "Tgid")?.parse().ok()
    };
    let found = process(first).filter(|process| is_qemu(*process));
    // Root may pin any thread, and numbers from another machine or program could be those of any
    // thread here.
    match vcpus.iter().find(|vcpu| found.is_none() || process(vcpu) != found) {
        None => Ok(found.unwrap_or_default()),
        Some(vcpu) => Err(PinError::NotHere { vcpu: vcpu.index, thread: vcpu.thread }),
    }
}

/// Returns true if a process runs a QEMU, by the name of its program.
fn is_qemu(process: u32) -> bool {
    let program = std::fs::read_link(format!("/proc/{process}/exe")).unwrap_or_default();
    program.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"qemu"))
}

fn pin_helpers(
    process: u32,
    vcpus: &[Vcpu],
    named: &[IoThread],
    cpus: Option<&CpuSet>,
) -> Result<Vec<HelperThread>, PinError> {
    let mut helpers = Vec::new();
    let mut all: Vec<u32> = threads(process).collect();
    all.sort_unstable();
    for thread in all {
        if vcpus.iter().any(|vcpu| vcpu.thread == thread) {
            continue;
        }
        let affinity = match cpus {
            Some(cpus) => pin(thread, cpus),
            None => affinity(thread),
        };
        let affinity = match affinity {
            // Worker threads end at any time.
            Err(PinError::Refused { source, .. }) if is_gone(&source) => continue,
            other => other?,
        };
        let named = named.iter().find(|io| io.thread == thread);
        let name = named.map(|io| io.name.clone());
        let its_own = || Stat::of_thread(process, thread).map(|stat| stat.name);
        helpers.push(HelperThread {
            name: name.or_else(its_own).unwrap_or_default(),
            thread,
            affinity,
        });
    }
    Ok(helpers)
}

fn runs_on(process: u32, thread: u32) -> Option<CpuId> {
    Some(Stat::of_thread(process, thread)?.cpu)
}

fn pin(thread: u32, cpus: &CpuSet) -> Result<CpuSet, PinError> {
    set_thread_affinity(thread, cpus).map_err(|error| PinError::Refused {
        thread,
        cpus: cpus.clone(),
        source: error.into(),
    })?;
    let kept = affinity(thread)?;
    // The kernel silently drops cpus outside the cpuset.
    if &kept == cpus {
        return Ok(kept);
    }
    Err(PinError::NotKept { thread, wanted: cpus.clone(), kept })
}

fn affinity(thread: u32) -> Result<CpuSet, PinError> {
    thread_affinity(thread).map_err(|error| PinError::Refused {
        thread,
        cpus: CpuSet::new(),
        source: error.into(),
    })
}

fn is_gone(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_thread_reads_its_own_affinity() {
        let own = affinity(std::process::id()).unwrap();
        assert!(!own.is_empty());
    }

    #[test]
    fn cpus_that_cannot_be_named_are_refused() {
        for cpu in [5000, u32::MAX] {
            let error = pin(std::process::id(), &CpuSet::from_iter([CpuId(cpu)])).unwrap_err();
            assert!(matches!(error, PinError::Refused { .. }), "{error}");
        }
    }

    #[test]
    fn a_missing_thread_is_named_with_its_vcpu() {
        let vcpu = Vcpu { index: 3, thread: 4_000_000_000, node: None };
        let error = process_of(&[vcpu]).unwrap_err();
        assert!(error.to_string().starts_with("vCPU 3: no thread 4000000000"), "{error}");
    }

    #[test]
    fn no_thread_of_another_program_than_a_qemu_is_pinned() {
        let own = |index| Vcpu { index, thread: std::process::id(), node: None };
        let error = process_of(&[own(0), own(1)]).unwrap_err();
        assert!(matches!(error, PinError::NotHere { vcpu: 0, .. }), "{error}");
    }
}
