//! The host memory that backs guest memory: page size, nodes, time of first touch.

use numalab_formats::qemu::MemoryBackend;
use numalab_formats::size::{format_bytes, format_rounded};
use numalab_host::{Classed, ErrorClass, HugePool, MemoryLimit, Root, nodes_with_memory};
use numalab_topology::{Machine, NodeSet};

pub use numalab_formats::qemu::HostPages;

use crate::qemu::Abilities;

/// Minimum memory below which Linux with numalab's image panics or has no room for the image.
const LEAST_LINUX_BYTES: u64 = 128 << 20;
/// A booting kernel writes 64 bytes for each page of 4096 (`struct page` of Linux).
const WRITTEN_SHARE: u64 = 4096 / 64;

/// The host memory that backs guest memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostMemory {
    pub pages: HostPages,
    /// The host nodes to which each guest node's memory is bound, for guest nodes with memory in
    /// order, starting over if there are more of them; unbound if empty.
    pub nodes: Vec<NodeSet>,
    /// True if all of it is touched before the guest starts.
    pub prealloc: bool,
    /// True if no swap space is reserved, so that guests larger than the host start.
    pub unreserved: bool,
}

/// Reason why the host cannot provide the memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostMemoryError {
    /// This QEMU lacks the feature.
    #[error("this QEMU does not support {what}")]
    Unable { what: &'static str },
    #[error(
        "{} of memory: Linux with numalab's image needs at least {}",
        format_bytes(*.memory_bytes), format_bytes(LEAST_LINUX_BYTES)
    )]
    TooSmall { memory_bytes: u64 },
    #[error(
        "{} of memory: a kernel writes {} of it to boot, more than half of the free memory here \
         ({}); use a smaller guest",
        format_bytes(*.memory_bytes), format_rounded(*.written_bytes), format_rounded(*.half_bytes)
    )]
    TooLarge {
        memory_bytes: u64,
        /// Minimum number of bytes written.
        written_bytes: u64,
        /// Half of the host's free memory.
        half_bytes: u64,
    },
    #[error("host node {node}: this machine has no such node with memory")]
    NoNode { node: u32 },
    #[error("huge pages of {page_bytes} bytes: this machine does not support that size")]
    NoSuchPages { page_bytes: u64 },
    #[error("huge pages of {page_bytes} bytes: {needed} needed, {free} free")]
    TooFewPages {
        page_bytes: u64,
        needed: u64,
        free: u64,
        /// The command that reserves enough.
        command: String,
    },
}

impl Classed for HostMemoryError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::NoNode { .. } | Self::TooSmall { .. } | Self::TooLarge { .. } => {
                ErrorClass::BadInput
            }
            Self::Unable { .. } | Self::NoSuchPages { .. } | Self::TooFewPages { .. } => {
                ErrorClass::Lacking
            }
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::Unable { .. } => {
                Some("use the distribution's package qemu-system-x86".to_owned())
            }
            Self::TooFewPages { command, .. } => Some(format!("as root: {command}")),
            Self::TooSmall { .. }
            | Self::TooLarge { .. }
            | Self::NoNode { .. }
            | Self::NoSuchPages { .. } => None,
        }
    }
}

impl HostMemory {
    /// Checks the request against this QEMU and the host below `root`.
    pub fn check(
        &self,
        machine: &Machine,
        abilities: Abilities,
        root: &Root,
    ) -> Result<(), HostMemoryError> {
        if !self.nodes.is_empty() && !abilities.host_nodes {
            let what = "memory bound to host nodes";
            return Err(HostMemoryError::Unable { what });
        }
        if self.pages != HostPages::Normal && !abilities.memfd {
            let what = "memory in huge pages or shared files";
            return Err(HostMemoryError::Unable { what });
        }
        let there = nodes_with_memory(root);
        let mut wanted = self.nodes.iter().flat_map(NodeSet::iter);
        if let Some(node) = wanted.find(|node| !there.contains(*node)) {
            return Err(HostMemoryError::NoNode { node: node.0 });
        }
        check_growth(machine.memory_bytes(), root)?;
        match self.pages {
            HostPages::Huge { page_bytes } => check_pool(machine, page_bytes, root),
            HostPages::Normal | HostPages::Shared => Ok(()),
        }
    }

    /// Applies the request to the backend with this index.
    pub(super) fn give(&self, index: usize, backend: &mut MemoryBackend, abilities: Abilities) {
        // With fewer lists than guest nodes, begin again with the first.
        let hosts = index.checked_rem(self.nodes.len()).and_then(|at| self.nodes.get(at));
        backend.pages = self.pages;
        backend.host_nodes = hosts.cloned().unwrap_or_default();
        backend.prealloc = self.prealloc;
        // Only a thread context keeps the threads that preallocate memory on its node.
        backend.touched_there = self.prealloc && abilities.prealloc_context && hosts.is_some();
        backend.unreserved = self.unreserved;
    }
}

/// Refuses a Linux guest with less memory than it needs to boot.
pub(super) fn check_linux(machine: &Machine) -> Result<(), HostMemoryError> {
    match machine.memory_bytes() {
        memory_bytes if memory_bytes < LEAST_LINUX_BYTES => {
            Err(HostMemoryError::TooSmall { memory_bytes })
        }
        _ => Ok(()),
    }
}

/// Checks a guest that may have more memory than the host if it never touches most of it.
fn check_growth(memory_bytes: u64, root: &Root) -> Result<(), HostMemoryError> {
    // Without a figure of available memory nothing can be refused.
    let Ok(limit) = MemoryLimit::read(root) else { return Ok(()) };
    let (written_bytes, half_bytes) = (memory_bytes / WRITTEN_SHARE, limit.available_bytes / 2);
    if written_bytes > half_bytes {
        return Err(HostMemoryError::TooLarge { memory_bytes, written_bytes, half_bytes });
    }
    Ok(())
}

fn check_pool(machine: &Machine, page_bytes: u64, root: &Root) -> Result<(), HostMemoryError> {
    let pool = HugePool::read(root, page_bytes, None)
        .ok_or(HostMemoryError::NoSuchPages { page_bytes })?;
    // Each backend rounds up to whole pages separately.
    let sizes = machine.nodes.iter().map(|node| node.memory_bytes.div_ceil(page_bytes));
    let needed: u64 = sizes.sum();
    if needed <= pool.free {
        return Ok(());
    }
    let command = pool.command(needed);
    Err(HostMemoryError::TooFewPages { page_bytes, needed, free: pool.free, command })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use numalab_topology::{Node, NodeId};

    const ALL: Abilities =
        Abilities { plugins: true, host_nodes: true, memfd: true, prealloc_context: true };

    fn machine() -> Machine {
        let node = |id, memory_bytes| Node { id: NodeId(id), memory_bytes, ..Node::default() };
        Machine {
            nodes: vec![node(0, 1 << 30), node(1, 0), node(2, 1 << 31)],
            ..Machine::default()
        }
    }

    fn nodes(text: &str) -> NodeSet {
        text.parse().unwrap()
    }

    #[test]
    fn a_pool_that_is_too_small_is_refused_with_the_command_that_grows_it() {
        let top = tempfile::tempdir().unwrap();
        let root = Root::at(top.path());
        let pool = top.path().join("sys/kernel/mm/hugepages/hugepages-2048kB");
        fs::create_dir_all(&pool).unwrap();
        fs::write(pool.join("free_hugepages"), "10\n").unwrap();
        fs::write(pool.join("nr_hugepages"), "15\n").unwrap();
        let memory = |page_bytes| HostMemory {
            pages: HostPages::Huge { page_bytes },
            ..HostMemory::default()
        };
        let error = memory(2 << 20).check(&machine(), ALL, &root).unwrap_err();
        assert_eq!(error.to_string(), "huge pages of 2097152 bytes: 1536 needed, 10 free");
        assert!(error.remedy().unwrap().starts_with("as root: echo 1541 > /sys/kernel/mm/"));
        let error = memory(1 << 30).check(&machine(), ALL, &root).unwrap_err();
        assert_eq!(error, HostMemoryError::NoSuchPages { page_bytes: 1 << 30 });
    }

    #[test]
    fn a_guest_may_be_larger_than_the_host_but_not_64_times_and_not_smaller_than_linux() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir_all(top.path().join("proc")).unwrap();
        let text = "MemTotal: 8388608 kB\nMemAvailable: 8388608 kB\n";
        fs::write(top.path().join("proc/meminfo"), text).unwrap();
        let root = Root::at(top.path());
        assert_eq!(check_growth(64 << 30, &root), Ok(()));
        let error = check_growth(900 << 30, &root).unwrap_err().to_string();
        assert!(error.contains("900G of memory") && error.contains("writes 14.1 GiB"), "{error}");
        assert_eq!(check_linux(&machine()), Ok(()));
        let tiny = Machine {
            nodes: vec![Node { memory_bytes: 4 << 20, ..Node::default() }],
            ..Machine::default()
        };
        let error = check_linux(&tiny).unwrap_err().to_string();
        assert!(error.contains("4M of memory") && error.contains("needs at least 128M"), "{error}");
    }

    #[test]
    fn host_nodes_must_exist_and_have_memory() {
        let top = tempfile::tempdir().unwrap();
        let root = Root::at(top.path());
        let directory = top.path().join("sys/devices/system/node");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("has_memory"), "0,2-3\n").unwrap();
        let memory = |list: &str| HostMemory { nodes: vec![nodes(list)], ..HostMemory::default() };
        let check = |list| memory(list).check(&machine(), ALL, &root);
        assert_eq!(check("0"), Ok(()));
        assert_eq!(check("1"), Err(HostMemoryError::NoNode { node: 1 }));
        assert_eq!(check("0,7"), Err(HostMemoryError::NoNode { node: 7 }));
        let none = Abilities::default();
        let unable = memory("0").check(&machine(), none, &root);
        assert!(matches!(unable, Err(HostMemoryError::Unable { .. })));
    }
}
