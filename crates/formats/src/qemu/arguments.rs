//! The arguments in structured form, and their conversion to words of a command line.

use std::fmt;

use super::backend::{MemoryBackend, add};
use super::cxl;

/// A machine as described to QEMU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QemuMachine {
    /// Packages, cores and hardware threads (`-smp`).
    pub smp: Smp,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Nodes, in order, except those of CXL memory.
    pub nodes: Vec<QemuNode>,
    /// The memory of CXL devices, whose nodes come after `nodes`.
    pub cxl: Vec<MemoryBackend>,
    /// Nodes of cpus, distances, latencies and memory-side caches, as words.
    pub(super) attributes: Vec<String>,
    /// Devices near nodes, as words.
    pub(super) devices: Vec<String>,
}

/// The option `-smp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Smp {
    /// Total number of cpus.
    pub cpus: usize,
    /// Packages.
    pub sockets: usize,
    /// L3 groups per package.
    pub dies: usize,
    /// Cores per L3 group.
    pub cores: usize,
    /// Threads per core.
    pub threads: usize,
}

/// The option `-numa node`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QemuNode {
    /// The backend of the node's memory, if it has any.
    pub backend: Option<MemoryBackend>,
    /// The node with cpus that is nearest to the memory, if the machine has an HMAT.
    pub initiator: Option<usize>,
}

impl QemuMachine {
    /// Returns the backends of the nodes, in order.
    pub fn backends_mut(&mut self) -> impl Iterator<Item = &mut MemoryBackend> {
        self.nodes.iter_mut().filter_map(|node| node.backend.as_mut()).chain(&mut self.cxl)
    }

    /// Returns only cpus and memory, for a machine with nodes that are described in another way.
    pub fn size_words(&self) -> Vec<String> {
        let memory = format!("{}M", self.memory_mib);
        vec!["-smp".to_owned(), self.smp.to_string(), "-m".to_owned(), memory]
    }

    /// Returns all words of the command line.
    pub fn words(&self) -> Vec<String> {
        let mut words = self.size_words();
        for (index, node) in self.nodes.iter().enumerate() {
            let mut numa = format!("node,nodeid={index}");
            if let Some(backend) = &node.backend {
                backend.add_to(&mut words);
                numa += &format!(",memdev=ram{}", backend.node);
            }
            if let Some(initiator) = node.initiator {
                numa += &format!(",initiator={initiator}");
            }
            add(&mut words, "-numa", numa);
        }
        words.extend_from_slice(&self.attributes);
        words.extend(cxl::words(&self.cxl));
        words.extend_from_slice(&self.devices);
        words
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
