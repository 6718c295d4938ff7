//! The sizes in a node's `meminfo`, or in that of the machine.

use numalab_host::{Root, proc};
use numalab_topology::NodeId;

/// The sizes that the kernel reports.
pub(super) struct Meminfo(String);

impl Meminfo {
    /// Reads the file of a node. The only node of a machine has the memory of the machine if it has
    /// no file, as under kernels without NUMA.
    pub(super) fn read(root: &Root, node: NodeId, is_only: bool) -> Self {
        let own = root.document(&format!("sys/devices/system/node/node{node}/meminfo")).ok();
        let of_machine = || root.document("proc/meminfo").ok().filter(|_| is_only);
        Self(own.or_else(of_machine).unwrap_or_default())
    }

    /// Returns the bytes of a field; `None` if the kernel does not report it.
    pub(super) fn bytes(&self, name: &str) -> Option<u64> {
        proc::bytes(&self.0, name).and_then(Result::ok)
    }

    /// Returns the bytes of page cache: a field for nodes, two for the machine.
    pub(super) fn page_cache_bytes(&self) -> Option<u64> {
        let of_machine = || self.bytes("Cached")?.checked_add(self.bytes("Buffers").unwrap_or(0));
        self.bytes("FilePages").or_else(of_machine)
    }
}
