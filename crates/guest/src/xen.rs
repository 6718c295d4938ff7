//! Xen on any NUMA machine: the hypervisor in QEMU, or the machine's own, with domains in it.

mod build;
mod compare;
mod files;
mod memory_map;
mod run;
mod this_machine;

pub use build::{XenBuild, XenBuildError};
pub use compare::difference;
pub use files::{XenFiles, XenFilesError};
pub use numalab_guest_agent::xen::{
    DomainAnswer, DomainJob, DomainKind, DomainPlace, DomainPlan, FIRST_DOMAIN, LostPhase,
    NodeRange, Pinning, VcpuPlace, XenEvent, XenLimits, XenPlan, check_dom0, text, tool_path,
};
pub use run::{XenError, XenMachine, XenReport, run};
pub use this_machine::{fitted, this_machine};
