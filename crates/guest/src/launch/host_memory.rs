//! What stands behind guest memory on the host: pages, nodes, when it is touched.

use std::fs;
use std::path::{Path, PathBuf};

use numalab_topology::{Machine, NodeSet};

use crate::qemu::Abilities;

/// The pages behind guest memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostPages {
    /// The system's usual pages; transparent huge ones if the system gives them.
    #[default]
    Normal,
    /// Huge pages of this size out of the system's pool (hugetlb).
    Huge {
        /// 2 MiB or 1 GiB.
        page_bytes: u64,
    },
    /// The system's usual pages in a file that others can be given (memfd).
    Shared,
}

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

    /// The object that keeps the threads on the node which touch the memory of
    /// the backend with this number ahead, if there are any.
    #[must_use]
    pub(super) fn thread_context(&self, backend: usize, abilities: Abilities) -> Option<String> {
        let hosts = self.hosts_of(backend)?;
        let possible = self.prealloc && abilities.prealloc_context;
        let list = host_list("node-affinity", hosts);
        possible.then(|| format!("thread-context,id=touch{backend}{list}"))
    }

    /// The backend with this number; `name_and_size` is its `id=...,size=...`.
    #[must_use]
    pub(super) fn backend(
        &self,
        backend: usize,
        name_and_size: &str,
        abilities: Abilities,
    ) -> String {
        let mut text = format!("{},{name_and_size}", self.kind());
        if let Some(hosts) = self.hosts_of(backend) {
            text += &format!("{},policy=bind", host_list("host-nodes", hosts));
        }
        if self.prealloc {
            text += ",prealloc=on";
        }
        if self.thread_context(backend, abilities).is_some() {
            text += &format!(",prealloc-context=touch{backend}");
        }
        if self.unreserved {
            text += ",reserve=off";
        }
        text
    }

    fn hosts_of(&self, backend: usize) -> Option<&NodeSet> {
        let position = backend.checked_rem(self.nodes.len())?;
        self.nodes.get(position)
    }

    fn kind(&self) -> String {
        match self.pages {
            HostPages::Normal => "memory-backend-ram".to_owned(),
            HostPages::Shared => "memory-backend-memfd,share=on".to_owned(),
            HostPages::Huge { page_bytes } => {
                format!("memory-backend-memfd,hugetlb=on,hugetlbsize={page_bytes}")
            }
        }
    }
}

/// `,host-nodes=0-1,host-nodes=3`
fn host_list(option: &str, nodes: &NodeSet) -> String {
    let list = nodes.to_string();
    list.split(',').map(|range| format!(",{option}={range}")).collect()
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
