//! Errors of mapping memory.

use numalab_record::Pages;
use numalab_topology::NodeId;
use rustix::io::Errno;

use crate::error_class::{Classed, ErrorClass};

/// Reason why memory could not be mapped, bound or touched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    #[error("{size_bytes} bytes of memory: expected at least 1 and less than 128 TiB")]
    Size { size_bytes: usize },
    #[error("{needed} huge pages of {pages} needed{}, {free} free; reserve them (as root): {command}", on_node(*.node))]
    NoHugePages {
        pages: Pages,
        /// The node, if one was chosen.
        node: Option<NodeId>,
        needed: u64,
        /// Free pages in the pool.
        free: u64,
        /// The command that reserves enough.
        command: String,
    },
    /// A control group allows too few huge pages, whether or not they are free.
    #[error(
        "{needed} huge pages of {pages} needed, but this process's control group allows only \
         {left} more: {file} is {limit_bytes}; raise it (as root): echo {no_limit} > {file}"
    )]
    HugePagesLimited {
        pages: Pages,
        needed: u64,
        /// Pages that the group allows in addition to those in use.
        left: u64,
        /// The file that holds the limit.
        file: String,
        limit_bytes: u64,
        /// The text to write to the file to remove the limit.
        no_limit: &'static str,
    },
    #[error("this kernel has no pages of {pages}: expected one of {}{}", listed(here), needs(*pages))]
    HugePagesUnsupported { pages: Pages, here: Vec<Pages> },
    /// The pages are a size of transparent huge pages smaller than that of `thp`.
    #[error(
        "{pages} is only a size of transparent huge pages here, which the kernel mixes with other \
         sizes and does not report for each mapping, so no figure could be proven to be for such \
         pages: expected one of {}",
        listed(here)
    )]
    TransparentSize { pages: Pages, here: Vec<Pages> },
    #[error("no memory for {size_bytes} bytes{}: choose a smaller size, or raise the limit (ulimit -v, the cgroup's memory.max, vm.overcommit_memory)", on_node(*.node))]
    OutOfMemory {
        size_bytes: usize,
        /// The node, if one was chosen.
        node: Option<NodeId>,
    },
    #[error(
        "node {node} has no usable memory: it does not exist, has no memory or is not in this \
         process's Mems_allowed_list ({allowed})"
    )]
    NodeNotAllowed {
        node: NodeId,
        /// The nodes that the process may use, as the kernel lists them.
        allowed: String,
    },
    #[error(
        "binding memory to node {node}, or reading its policy back, is forbidden ({errno}): a seccomp filter or a kernel without NUMA blocks mbind(2) or get_mempolicy(2); for a container: --cap-add SYS_NICE or --security-opt seccomp=unconfined"
    )]
    BindForbidden { node: NodeId, errno: Errno },
    #[error(
        "memory was bound to node {node}, but the kernel reports policy {mode} on nodes {nodes:?}"
    )]
    BindNotApplied {
        node: NodeId,
        /// The policy mode (`MPOL_*` of `linux/mempolicy.h`; 2 is bind).
        mode: i32,
        nodes: Vec<NodeId>,
    },
    #[error("{call} of {size_bytes} bytes: {errno}")]
    Kernel { call: &'static str, size_bytes: usize, errno: Errno },
}

fn on_node(node: Option<NodeId>) -> String {
    node.map_or_else(String::new, |node| format!(" on node {node}"))
}

impl Classed for MappingError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Size { .. } | Self::NodeNotAllowed { .. } => ErrorClass::BadInput,
            Self::NoHugePages { .. }
            | Self::HugePagesLimited { .. }
            | Self::HugePagesUnsupported { .. }
            | Self::TransparentSize { .. }
            | Self::OutOfMemory { .. }
            | Self::BindForbidden { .. } => ErrorClass::Lacking,
            Self::BindNotApplied { .. } | Self::Kernel { .. } => ErrorClass::Failed,
        }
    }
}
/// Formats choices of pages: `4k, thp, 2m`.
fn listed(pages: &[Pages]) -> String {
    let names: Vec<String> = pages.iter().map(|pages| pages.name()).collect();
    names.join(", ")
}

/// Returns the processor feature that pages of a size need.
fn needs(pages: Pages) -> &'static str {
    match pages {
        Pages::HUGE_1G => " (1g on x86-64 needs the cpu flag pdpe1gb)",
        Pages::Sized(_) | Pages::Transparent => "",
    }
}
