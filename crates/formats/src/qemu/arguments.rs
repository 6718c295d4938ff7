//! The arguments by what they mean; their words come last.

use std::fmt;

use numalab_topology::NodeSet;

/// A machine as QEMU is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QemuMachine {
    /// Its cpus.
    pub smp: Smp,
    /// Its memory in MiB.
    pub memory_mib: u64,
    /// Its nodes, in order.
    pub nodes: Vec<QemuNode>,
    /// Which cpu is on which node, distances, latencies and memory-side caches, as words.
    pub(super) attributes: Vec<String>,
    /// Devices near nodes, as words.
    pub(super) devices: Vec<String>,
}

/// `-smp`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Smp {
    /// Cpus in all.
    pub cpus: usize,
    /// Packages.
    pub sockets: usize,
    /// L3 groups of a package.
    pub dies: usize,
    /// Cores of an L3 group.
    pub cores: usize,
    /// Threads of a core.
    pub threads: usize,
}

/// `-numa node`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QemuNode {
    /// What its memory is made of, if it has any.
    pub backend: Option<MemoryBackend>,
    /// The node with cpus that is nearest to its memory, where the machine has an HMAT.
    pub initiator: Option<usize>,
}

/// `-object memory-backend-...`: a node's memory on the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryBackend {
    /// The guest's node.
    pub node: usize,
    /// Its size in MiB.
    pub size_mib: u64,
    /// The pages behind it.
    pub pages: HostPages,
    /// The host's nodes that it is bound to; none leaves the choice to the host.
    pub host_nodes: NodeSet,
    /// Whether all of it is touched before the guest starts.
    pub prealloc: bool,
    /// Whether the threads that touch it ahead are kept on its host nodes.
    pub touched_there: bool,
    /// Whether swap space is not reserved, so that guests larger than the host start.
    pub unreserved: bool,
}

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

impl QemuMachine {
    /// The backends of its nodes, in order.
    pub fn backends_mut(&mut self) -> impl Iterator<Item = &mut MemoryBackend> {
        self.nodes.iter_mut().filter_map(|node| node.backend.as_mut())
    }

    /// Cpus and memory alone, for a machine whose nodes are told otherwise.
    #[must_use]
    pub fn size_words(&self) -> Vec<String> {
        let memory = format!("{}M", self.memory_mib);
        vec!["-smp".to_owned(), self.smp.to_string(), "-m".to_owned(), memory]
    }

    /// All words of the command line.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let mut words = self.size_words();
        for (index, node) in self.nodes.iter().enumerate() {
            let mut numa = format!("node,nodeid={index}");
            if let Some(backend) = &node.backend {
                if let Some(context) = backend.thread_context() {
                    words.extend(["-object".to_owned(), context]);
                }
                words.extend(["-object".to_owned(), backend.to_string()]);
                numa += &format!(",memdev=ram{}", backend.node);
            }
            if let Some(initiator) = node.initiator {
                numa += &format!(",initiator={initiator}");
            }
            words.extend(["-numa".to_owned(), numa]);
        }
        words.extend_from_slice(&self.attributes);
        words.extend_from_slice(&self.devices);
        words
    }
}

impl MemoryBackend {
    /// The object that keeps the threads on its host nodes which touch it ahead.
    fn thread_context(&self) -> Option<String> {
        let list = host_list("node-affinity", &self.host_nodes);
        self.touched_there.then(|| format!("thread-context,id=touch{}{list}", self.node))
    }
}

impl fmt::Display for Smp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpus, sockets, dies, cores, threads } = self;
        write!(f, "{cpus},sockets={sockets}")?;
        if *dies > 1 {
            write!(f, ",dies={dies}")?;
        }
        write!(f, ",cores={cores},threads={threads}")
    }
}

impl fmt::Display for MemoryBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.pages {
            HostPages::Normal => "ram",
            HostPages::Shared | HostPages::Huge { .. } => "memfd",
        };
        write!(f, "memory-backend-{kind},id=ram{},size={}M", self.node, self.size_mib)?;
        match self.pages {
            HostPages::Normal => {}
            HostPages::Shared => f.write_str(",share=on")?,
            HostPages::Huge { page_bytes } => {
                write!(f, ",hugetlb=on,hugetlbsize={page_bytes}")?;
            }
        }
        if !self.host_nodes.is_empty() {
            write!(f, "{},policy=bind", host_list("host-nodes", &self.host_nodes))?;
        }
        if self.prealloc {
            f.write_str(",prealloc=on")?;
        }
        if self.touched_there {
            write!(f, ",prealloc-context=touch{}", self.node)?;
        }
        if self.unreserved {
            f.write_str(",reserve=off")?;
        }
        Ok(())
    }
}

/// `,host-nodes=0-1,host-nodes=3`
fn host_list(option: &str, nodes: &NodeSet) -> String {
    let list = nodes.to_string();
    list.split(',').map(|range| format!(",{option}={range}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_says_where_its_pages_come_from_and_who_touches_them() {
        let plain = MemoryBackend { node: 1, size_mib: 512, ..MemoryBackend::default() };
        assert_eq!(plain.to_string(), "memory-backend-ram,id=ram1,size=512M");
        assert_eq!(plain.thread_context(), None);
        let bound = MemoryBackend {
            pages: HostPages::Shared,
            host_nodes: "1,3".parse().unwrap(),
            prealloc: true,
            touched_there: true,
            unreserved: true,
            ..plain
        };
        assert_eq!(
            bound.to_string(),
            "memory-backend-memfd,id=ram1,size=512M,share=on,host-nodes=1,host-nodes=3,\
             policy=bind,prealloc=on,prealloc-context=touch1,reserve=off"
        );
        let context = bound.thread_context().unwrap();
        assert_eq!(context, "thread-context,id=touch1,node-affinity=1,node-affinity=3");
    }
}
