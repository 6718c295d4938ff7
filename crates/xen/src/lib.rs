#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "fields of errors and records that their names explain")]
#![expect(clippy::missing_errors_doc, reason = "error types that list what can fail")]

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
