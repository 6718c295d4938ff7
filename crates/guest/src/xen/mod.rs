//! Xen on a NUMA machine: the hypervisor with its first domain in QEMU, or the machine's
//! own, and domains in it that run jobs together and whose memory is found.
//!
//! A Xen machine is a Linux guest whose kernel a hypervisor has under it
//! ([`Hypervisor`](crate::Hypervisor)). Its first domain runs our process 1 with the
//! result channel, and in it the [`agent`], which makes the other domains with `xl`
//! as a [`XenPlan`] says, and reports [`XenEvent`]s. In each of those our process 1
//! waits for jobs in xenstore ([`domain`]).

pub mod agent;
mod build;
mod compare;
pub mod domain;
mod event;
mod files;
mod memory_map;
mod plan;
mod run;
pub mod text;
mod this_machine;
mod vmlinux;
pub mod xenstore;

pub use agent::{check_dom0, tool_path};
pub use build::{XenBuild, XenBuildError};
pub use compare::difference;
pub use event::{DomainAnswer, FIRST_DOMAIN, LostPhase, Place, VcpuPlace, XenEvent};
pub(crate) use files::DOMAIN_MARK;
pub use files::{XenFiles, XenFilesError};
pub use memory_map::{NodeRange, node_ranges};
pub use plan::{DomainJob, DomainKind, DomainPlan, Pinning, XenLimits, XenPlan};
pub use run::{XenError, XenMachine, XenReport, run};
pub use this_machine::{fitted, this_machine};
pub use vmlinux::{VmlinuxError, of_bzimage};
