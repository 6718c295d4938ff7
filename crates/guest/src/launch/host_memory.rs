//! What stands behind guest memory on the host: pages, nodes, when it is touched.

use std::fs;
use std::path::{Path, PathBuf};

use numalab_formats::qemu::MemoryBackend;
use numalab_topology::{Machine, NodeSet};

pub use numalab_formats::qemu::HostPages;

use crate::qemu::Abilities;

/// What stands behind guest memory on the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostMemory {
    /// Which pages.
    pub pages: HostPages,
    /// The host nodes that each guest node's memory is bound to, guest nodes with
    /// memory in order, from the first again where there are more; unbound if empty.
    pub nodes: Vec<NodeSet>,
    /// Whether all of it is touched before the guest starts.
    pub prealloc: bool,
    /// Whether swap space is not reserved, so that guests larger than the host start.
    pub unreserved: bool,
}

/// Why memory cannot be had like that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostMemoryError {
    /// This QEMU cannot do it.
    #[error("this QEMU cannot have {what}")]
    Unable {
        /// What it cannot have.
        what: &'static str,
    },
    /// The host has no such node.
    #[error("host node {node}: this machine has no such node with memory")]
    NoNode {
        /// The node.
        node: u32,
    },
    /// The host has no huge pages of this size.
    #[error("huge pages of {page_bytes} bytes: this machine has none of that size")]
    NoSuchPages {
        /// The size.
        page_bytes: u64,
    },
    /// The pool of huge pages is too small.
    #[error("huge pages of {page_bytes} bytes: {needed} needed, {free} free")]
    TooFewPages {
        /// The size.
        page_bytes: u64,
        /// Pages needed.
        needed: u64,
        /// Pages free.
        free: u64,
        /// The file that sets the pool's size.
        pool: PathBuf,
    },
}

impl HostMemoryError {
    /// What would mend this machine.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Unable { .. } => Some("use the distribution's qemu-system-x86".to_owned()),
            Self::TooFewPages { needed, pool, .. } => {
                Some(format!("as root: echo {needed} > {}", pool.display()))
            }
            Self::NoNode { .. } | Self::NoSuchPages { .. } => None,
        }
    }
}

impl HostMemory {
    /// Checks what is asked for against this QEMU and the host, whose files are
    /// below `sys` (`/sys`).
    ///
    /// # Errors
    /// [`HostMemoryError`].
    pub fn check(
        &self,
        machine: &Machine,
        abilities: Abilities,
        sys: &Path,
    ) -> Result<(), HostMemoryError> {
        if !self.nodes.is_empty() && !abilities.host_nodes {
            let what = "memory bound to host nodes";
            return Err(HostMemoryError::Unable { what });
        }
        if self.pages != HostPages::Normal && !abilities.memfd {
            let what = "memory in huge pages or shared files";
            return Err(HostMemoryError::Unable { what });
        }
        for node in self.nodes.iter().flat_map(NodeSet::iter) {
            let file = sys.join(format!("devices/system/node/node{node}/meminfo"));
            let text = fs::read_to_string(file).unwrap_or_default();
            if !has_memory(&text) {
                return Err(HostMemoryError::NoNode { node: node.0 });
            }
        }
        match self.pages {
            HostPages::Huge { page_bytes } => check_pool(machine, page_bytes, sys),
            HostPages::Normal | HostPages::Shared => Ok(()),
        }
    }

    /// Puts this behind the backend that is the `index`th.
    pub(super) fn give(&self, index: usize, backend: &mut MemoryBackend, abilities: Abilities) {
        let hosts = index.checked_rem(self.nodes.len()).and_then(|at| self.nodes.get(at));
        backend.pages = self.pages;
        backend.host_nodes = hosts.cloned().unwrap_or_default();
        backend.prealloc = self.prealloc;
        backend.touched_there = self.prealloc && abilities.prealloc_context && hosts.is_some();
        backend.unreserved = self.unreserved;
    }
}

fn has_memory(meminfo: &str) -> bool {
    let total = meminfo.lines().find(|line| line.contains("MemTotal:"));
    let words = total.map(str::split_whitespace);
    words.and_then(|mut words| words.nth(3)?.parse::<u64>().ok()).is_some_and(|kib| kib > 0)
}

fn check_pool(machine: &Machine, page_bytes: u64, sys: &Path) -> Result<(), HostMemoryError> {
    let directory = sys.join(format!("kernel/mm/hugepages/hugepages-{}kB", page_bytes / 1024));
    let free = fs::read_to_string(directory.join("free_hugepages")).ok();
    let free: Option<u64> = free.and_then(|text| text.trim().parse().ok());
    let free = free.ok_or(HostMemoryError::NoSuchPages { page_bytes })?;
    let sizes = machine.nodes.iter().map(|node| node.memory_bytes.div_ceil(page_bytes));
    let needed: u64 = sizes.sum();
    if needed <= free {
        return Ok(());
    }
    Err(HostMemoryError::TooFewPages {
        page_bytes,
        needed,
        free,
        pool: directory.join("nr_hugepages"),
    })
}

#[cfg(test)]
mod tests {
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
    fn a_pool_that_is_too_small_is_told_with_the_way_to_grow_it() {
        let sys = tempfile::tempdir().unwrap();
        let pool = sys.path().join("kernel/mm/hugepages/hugepages-2048kB");
        fs::create_dir_all(&pool).unwrap();
        fs::write(pool.join("free_hugepages"), "10\n").unwrap();
        let memory = |page_bytes| HostMemory {
            pages: HostPages::Huge { page_bytes },
            ..HostMemory::default()
        };
        let error = memory(2 << 20).check(&machine(), ALL, sys.path()).unwrap_err();
        assert_eq!(error.to_string(), "huge pages of 2097152 bytes: 1536 needed, 10 free");
        assert!(error.remedy().unwrap().starts_with("as root: echo 1536 > "));
        let error = memory(1 << 30).check(&machine(), ALL, sys.path()).unwrap_err();
        assert_eq!(error, HostMemoryError::NoSuchPages { page_bytes: 1 << 30 });
    }

    #[test]
    fn host_nodes_must_exist_and_have_memory() {
        let sys = tempfile::tempdir().unwrap();
        for (node, kib) in [(0, 1000), (1, 0)] {
            let directory = sys.path().join(format!("devices/system/node/node{node}"));
            fs::create_dir_all(&directory).unwrap();
            let text = format!("Node {node} MemTotal:        {kib} kB\n");
            fs::write(directory.join("meminfo"), text).unwrap();
        }
        let memory = |list: &str| HostMemory { nodes: vec![nodes(list)], ..HostMemory::default() };
        let check = |list| memory(list).check(&machine(), ALL, sys.path());
        assert_eq!(check("0"), Ok(()));
        assert_eq!(check("1"), Err(HostMemoryError::NoNode { node: 1 }));
        assert_eq!(check("0,7"), Err(HostMemoryError::NoNode { node: 7 }));
        let none = Abilities::default();
        let unable = memory("0").check(&machine(), none, sys.path());
        assert!(matches!(unable, Err(HostMemoryError::Unable { .. })));
    }
}
