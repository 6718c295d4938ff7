//! The inside of Xen: the [`agent`] in the first domain creates the others with `xl` according to a
//! [`XenPlan`] and reports [`XenEvent`]s; in each of those our process 1 waits for jobs in xenstore
//! ([`domain`]).

pub mod agent;
pub mod domain;
mod event;
mod plan;
pub mod text;
pub mod xenstore;

pub use agent::{check_dom0, tool_path};
pub use event::{DomainAnswer, DomainPlace, FIRST_DOMAIN, LostPhase, VcpuPlace, XenEvent};
pub use plan::{DomainJob, DomainKind, DomainPlan, NodeRange, Pinning, XenLimits, XenPlan};

/// The file that marks a domain, as opposed to a guest with a result channel.
pub const DOMAIN_MARK: &str = "/etc/numalab/xen-domain";
/// Path of the other domains' kernel in the first domain.
pub const DOMAIN_KERNEL: &str = "/boot/vmlinux";
/// Path of the other domains' image in the first domain.
pub const DOMAIN_IMAGE: &str = "/boot/domain.cpio";
