//! Xen from inside: the [`agent`] in the first domain makes the others with `xl` as a
//! [`XenPlan`] says and reports [`XenEvent`]s; in each of those our process 1 waits for
//! jobs in xenstore ([`domain`]).

pub mod agent;
pub mod domain;
mod event;
mod plan;
pub mod text;
pub mod xenstore;

pub use agent::{check_dom0, tool_path};
pub use event::{DomainAnswer, FIRST_DOMAIN, LostPhase, Place, VcpuPlace, XenEvent};
pub use plan::{DomainJob, DomainKind, DomainPlan, NodeRange, Pinning, XenLimits, XenPlan};

/// Tells process 1 that it is in a domain, not in a guest with a result channel.
pub const DOMAIN_MARK: &str = "/etc/numalab/xen-domain";
/// Where the other domains' kernel is in the first domain.
pub const DOMAIN_KERNEL: &str = "/boot/vmlinux";
/// Where the other domains' image is in the first domain.
pub const DOMAIN_IMAGE: &str = "/boot/domain.cpio";
