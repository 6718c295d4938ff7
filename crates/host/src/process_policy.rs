//! The memory policy of this process, which programs inherit across exec.

use numalab_topology::{MemoryPolicy, NodeSet};
use rustix::io::Errno;

use crate::error_class::{Classed, ErrorClass};
use crate::linux_version::linux_version;
use crate::mapping::is_only_node;
use crate::syscall;

/// `MPOL_WEIGHTED_INTERLEAVE` of `linux/mempolicy.h`, since Linux 6.9.
const WEIGHTED_INTERLEAVE: i32 = 6;
/// `MPOL_PREFERRED_MANY`, since Linux 5.15.
const PREFERRED_MANY: i32 = 5;
/// `MPOL_LOCAL`; some kernels report it as `MPOL_PREFERRED` without nodes.
const LOCAL: i32 = 4;

fn kernel_mode(policy: &MemoryPolicy) -> (i32, NodeSet) {
    let mode = match policy {
        MemoryPolicy::Local => libc::MPOL_DEFAULT,
        MemoryPolicy::Bind(_) => libc::MPOL_BIND,
        MemoryPolicy::Preferred(nodes) if nodes.len() > 1 => PREFERRED_MANY,
        MemoryPolicy::Preferred(_) => libc::MPOL_PREFERRED,
        MemoryPolicy::Interleave(_) => libc::MPOL_INTERLEAVE,
        MemoryPolicy::WeightedInterleave(_) => WEIGHTED_INTERLEAVE,
    };
    (mode, policy.nodes())
}

/// Returns the policy of the kernel's mode and nodes; `None` for a mode that is not known.
fn policy_of_mode(mode: i32, nodes: NodeSet) -> Option<MemoryPolicy> {
    match mode {
        libc::MPOL_DEFAULT | LOCAL => Some(MemoryPolicy::Local),
        // Without nodes, this mode allocates locally (set_mempolicy(2)).
        libc::MPOL_PREFERRED if nodes.is_empty() => Some(MemoryPolicy::Local),
        _ if nodes.is_empty() => None,
        libc::MPOL_PREFERRED | PREFERRED_MANY => Some(MemoryPolicy::Preferred(nodes)),
        libc::MPOL_BIND => Some(MemoryPolicy::Bind(nodes)),
        libc::MPOL_INTERLEAVE => Some(MemoryPolicy::Interleave(nodes)),
        WEIGHTED_INTERLEAVE => Some(MemoryPolicy::WeightedInterleave(nodes)),
        _ => None,
    }
}

/// Reason why the memory policy of a process could not be set or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    #[error(
        "weighted interleaving needs Linux 6.9 or newer, this is {release}; interleave uses all \
         nodes equally"
    )]
    NoWeights { release: String },
    #[error(
        "memory policy {policy}: this kernel can prefer only one node: several need Linux 5.15 or \
         newer, this is {release}; name one node, or bind"
    )]
    NoPreferredMany { policy: MemoryPolicy, release: String },
    #[error(
        "memory policy {policy}: a node does not exist, has no memory or is not in this process's Mems_allowed_list ({allowed})"
    )]
    NodeNotAllowed {
        policy: MemoryPolicy,
        /// The nodes that may be used.
        allowed: String,
    },
    #[error(
        "memory policy {wanted} was set, but the kernel keeps {kept}: nodes without memory or \
         outside the cpuset are silently left out"
    )]
    NotApplied { wanted: MemoryPolicy, kept: String },
    #[error(
        "the memory policy cannot be set or read ({errno}): a seccomp filter or a kernel without NUMA; for a container: --cap-add SYS_NICE or --security-opt seccomp=unconfined"
    )]
    Forbidden { errno: Errno },
}

impl Classed for PolicyError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::NodeNotAllowed { .. } => ErrorClass::BadInput,
            Self::NoWeights { .. } | Self::NoPreferredMany { .. } | Self::Forbidden { .. } => {
                ErrorClass::Lacking
            }
            Self::NotApplied { .. } => ErrorClass::Failed,
        }
    }
}

/// Returns the memory policy of the calling thread.
///
/// # Errors
/// [`PolicyError::Forbidden`] if `get_mempolicy(2)` fails.
pub fn process_policy() -> Result<MemoryPolicy, PolicyError> {
    match syscall::own_policy() {
        Ok(policy) => Ok(policy_of_mode(policy.mode, NodeSet::from_iter(policy.nodes))
            .unwrap_or(MemoryPolicy::Local)),
        // A kernel without NUMA has one node, so all memory is local.
        Err(Errno::NOSYS) => Ok(MemoryPolicy::Local),
        Err(errno) => Err(PolicyError::Forbidden { errno }),
    }
}

/// Sets the memory policy of the calling thread, its later children and the programs that it
/// executes, and reads it back. On a machine with one node, a kernel that refuses is accepted,
/// since there is no other place.
///
/// # Errors
/// Every variant of [`PolicyError`].
pub fn set_process_policy(policy: &MemoryPolicy) -> Result<(), PolicyError> {
    let (mode, nodes) = kernel_mode(policy);
    let not_allowed = || PolicyError::NodeNotAllowed {
        policy: policy.clone(),
        allowed: crate::allowed::allowed_now()
            .map_or_else(|_| "unknown".to_owned(), |allowed| allowed.memory_nodes.to_string()),
    };
    match syscall::set_own_policy(mode, &nodes) {
        Ok(()) => {}
        // EINVAL means an unknown mode or unusable nodes, so the kernel's version decides.
        Err(Errno::INVAL) if mode == PREFERRED_MANY && !has_preferred_many() => {
            return Err(PolicyError::NoPreferredMany {
                policy: policy.clone(),
                release: release(),
            });
        }
        Err(Errno::INVAL) if mode == WEIGHTED_INTERLEAVE && !has_weights() => {
            return Err(PolicyError::NoWeights { release: release() });
        }
        Err(Errno::INVAL | Errno::NODEV) => return Err(not_allowed()),
        Err(Errno::NOSYS) if nodes.iter().all(is_only_node) => return Ok(()),
        Err(errno) => return Err(PolicyError::Forbidden { errno }),
    }
    // The kernel drops nodes without memory or outside the cpuset silently.
    let kept = process_policy()?;
    if kept == *policy {
        Ok(())
    } else {
        Err(PolicyError::NotApplied { wanted: policy.clone(), kept: kept.to_string() })
    }
}

/// Reports whether this kernel has weighted interleave.
fn has_weights() -> bool {
    linux_version(&release()).is_some_and(|version| version >= (6, 9))
}

/// Reports whether this kernel can prefer several nodes.
fn has_preferred_many() -> bool {
    linux_version(&release()).is_some_and(|version| version >= (5, 15))
}

fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use numalab_topology::NodeId;

    use super::*;

    /// Reports whether there are memory policies at all; qemu-user has none.
    fn has_policies() -> bool {
        let has = syscall::own_policy() != Err(Errno::NOSYS);
        if !has {
            eprintln!("NOT RUN: this kernel or emulator has no memory policies");
        }
        has
    }

    #[test]
    fn a_policy_is_set_and_read_back_and_inherited_by_threads() {
        if !has_policies() {
            return;
        }
        let only = crate::allowed::allowed_now().unwrap().memory_nodes;
        let node = only.first().unwrap_or_default();
        for policy in [
            MemoryPolicy::bound_to(node),
            MemoryPolicy::Preferred(NodeSet::from_iter([node])),
            MemoryPolicy::Interleave(NodeSet::from_iter([node])),
        ] {
            std::thread::spawn(move || {
                set_process_policy(&policy).unwrap();
                let inherited = std::thread::spawn(process_policy).join().unwrap();
                assert_eq!(inherited, Ok(policy));
                set_process_policy(&MemoryPolicy::Local).unwrap();
                assert_eq!(process_policy(), Ok(MemoryPolicy::Local));
            })
            .join()
            .unwrap();
        }
    }

    #[test]
    fn several_preferred_nodes_use_another_kernel_mode_than_one() {
        let nodes = |list: &str| list.parse::<NodeSet>().unwrap();
        let [many, one] = ["0,2", "2"].map(|list| MemoryPolicy::Preferred(nodes(list)));
        assert_eq!(kernel_mode(&many), (PREFERRED_MANY, nodes("0,2")));
        assert_eq!(kernel_mode(&one), (libc::MPOL_PREFERRED, nodes("2")));
        assert_eq!(policy_of_mode(PREFERRED_MANY, nodes("0,2")), Some(many));
        assert_eq!(policy_of_mode(PREFERRED_MANY, nodes("2")), Some(one));
    }

    #[test]
    fn a_missing_node_is_refused_with_the_existing_ones() {
        if !has_policies() {
            return;
        }
        let policy = MemoryPolicy::bound_to(NodeId(900));
        let error = set_process_policy(&policy).unwrap_err();
        assert_eq!(error.class(), ErrorClass::BadInput);
        assert!(error.to_string().contains("bind:900"), "{error}");
    }

    #[test]
    fn weighted_interleave_needs_linux_6_9() {
        if !has_policies() {
            return;
        }
        let policy = MemoryPolicy::WeightedInterleave(NodeSet::from_iter([NodeId(0)]));
        std::thread::spawn(move || match set_process_policy(&policy) {
            Ok(()) => assert!(has_weights()),
            Err(error) => {
                assert!(!has_weights(), "{error}");
                assert_eq!(error.class(), ErrorClass::Lacking);
                assert!(error.to_string().contains("6.9"), "{error}");
            }
        })
        .join()
        .unwrap();
    }
}
