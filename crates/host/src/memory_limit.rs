//! The memory that this process may use before the kernel kills it.

use core::fmt;
use std::collections::BTreeMap;

use numalab_record::explore::{NodeRoom, RoomByNode};
use numalab_topology::{NodeId, NodeSet};

use crate::cgroup;
use crate::error_class::{Classed, ErrorClass};
use crate::proc;
use crate::root::Root;
use crate::sysfs::figures_disagree;

/// Divisor of the share that is left to page tables, the kernel and other processes: 1/32.
const RESERVE_SHARE: u64 = 32;

/// The limit that applies to this process's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LimitSource {
    /// `MemAvailable` of `/proc/meminfo`.
    Machine,
    /// The nodes' memory, where a `/proc` has only processes (`subset=pid`).
    Nodes,
    /// A control group's limit, with the file that holds it.
    ControlGroup(String),
}

impl fmt::Display for LimitSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine => f.write_str("MemAvailable of /proc/meminfo"),
            Self::Nodes => f.write_str("MemFree of /sys/devices/system/node/node*/meminfo"),
            Self::ControlGroup(file) => f.write_str(file),
        }
    }
}

/// Reason why memory is refused before it is allocated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    #[error("{} MiB of memory needed, but only {} MiB may be used ({limit}): choose a smaller size \
             or fewer cpus at once", .wanted_bytes >> 20, .usable_bytes >> 20)]
    TooLarge { wanted_bytes: u64, usable_bytes: u64, limit: LimitSource },
    #[error("{} MiB of memory needed on node {node}, which has {} MiB available: choose a smaller \
             size, fewer cpus at once, or another node", .wanted_bytes >> 20, .usable_bytes >> 20)]
    TooLargeForNode { node: NodeId, wanted_bytes: u64, usable_bytes: u64 },
    /// Neither `/proc/meminfo` nor any node has such a figure.
    #[error(
        "/proc/meminfo does not have MemAvailable or MemFree, nor has any \
         /sys/devices/system/node/node*/meminfo: are /proc and /sys mounted, /proc without subset=pid?"
    )]
    Unknown,
}

impl Classed for MemoryError {
    fn class(&self) -> ErrorClass {
        match self {
            // The size would fit the machine; the limit of this process is too low.
            Self::TooLarge { limit: LimitSource::ControlGroup(_), .. } | Self::Unknown => {
                ErrorClass::Lacking
            }
            Self::TooLarge { .. } | Self::TooLargeForNode { .. } => ErrorClass::BadInput,
        }
    }
}

/// The memory available to this process in base or transparent huge pages; reserved huge pages are
/// counted by their pools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// Total bytes that can be allocated.
    pub available_bytes: u64,
    pub source: LimitSource,
    /// Bytes on each node that are free or can be freed without swapping, as the node reports.
    pub nodes: BTreeMap<NodeId, u64>,
    node_figures_agree: bool,
}

impl MemoryLimit {
    /// Reads the limits.
    ///
    /// # Errors
    /// [`MemoryError::Unknown`] if no file has a figure of available memory.
    pub fn read(root: &Root) -> Result<Self, MemoryError> {
        let meminfo = root.document("proc/meminfo").unwrap_or_default();
        let field = |name| proc::bytes(&meminfo, name).and_then(Result::ok);
        let nodes = read_nodes(root);
        // Kernels before 3.14 have no MemAvailable.
        let of_machine = field("MemAvailable").or_else(|| field("MemFree"));
        let of_machine = of_machine.map(|bytes| (bytes, LimitSource::Machine));
        let of_nodes = || {
            let sum = nodes.values().map(|node| node.available_bytes).fold(0, u64::saturating_add);
            (!nodes.is_empty()).then_some((sum, LimitSource::Nodes))
        };
        let whole = of_machine.or_else(of_nodes).ok_or(MemoryError::Unknown)?;
        let (available_bytes, source) = match cgroup::tightest(root) {
            Some(group) if group.left_bytes < whole.0 => {
                (group.left_bytes, LimitSource::ControlGroup(group.file))
            }
            _ => whole,
        };
        let total_of_nodes = total_of(&nodes);
        let total = field("MemTotal").unwrap_or(0);
        Ok(Self {
            available_bytes,
            source,
            node_figures_agree: !figures_disagree(total_of_nodes, total),
            nodes: nodes.into_iter().map(|(node, memory)| (node, memory.available_bytes)).collect(),
        })
    }

    /// Reports whether the nodes together report about as much memory as the machine. If they do
    /// not, the nodes' figures lack memory that was added at run time, and no size is refused
    /// because of them.
    pub fn node_figures_agree(&self) -> bool {
        self.node_figures_agree
    }

    /// Checks that `wanted_bytes`, the sum of all buffers alive at once, can be allocated, and on
    /// `node` alone if one is given. One 32nd of the available memory is left free.
    ///
    /// # Errors
    /// [`MemoryError::TooLarge`], [`MemoryError::TooLargeForNode`].
    pub fn check(&self, wanted_bytes: u64, node: Option<NodeId>) -> Result<(), MemoryError> {
        let usable = |available_bytes: u64| available_bytes - available_bytes / RESERVE_SHARE;
        let usable_bytes = usable(self.available_bytes);
        if wanted_bytes > usable_bytes {
            return Err(MemoryError::TooLarge {
                wanted_bytes,
                usable_bytes,
                limit: self.source.clone(),
            });
        }
        // A kernel that initialises memory lazily adds it to its node's total only when it is first
        // used: on one machine of 24 GB, the only node reported 8. Such a figure must not cause a
        // refusal.
        let Some(node) = node.filter(|_| self.node_figures_agree) else {
            return Ok(());
        };
        match self.nodes.get(&node).copied().map(usable) {
            Some(usable_bytes) if wanted_bytes > usable_bytes => {
                Err(MemoryError::TooLargeForNode { node, wanted_bytes, usable_bytes })
            }
            _ => Ok(()),
        }
    }
}

/// Returns the nodes that have memory; none on a kernel without NUMA.
pub fn nodes_with_memory(root: &Root) -> NodeSet {
    let list = root.value("sys/devices/system/node/has_memory").ok();
    list.and_then(|list| list.parse().ok()).unwrap_or_default()
}

/// Returns the memory of each node; none if the nodes' figures lack memory that the machine has.
pub fn node_rooms(root: &Root) -> RoomByNode {
    let rooms = read_nodes(root);
    let meminfo = root.document("proc/meminfo").unwrap_or_default();
    let total_bytes = proc::bytes(&meminfo, "MemTotal").and_then(Result::ok).unwrap_or(0);
    if figures_disagree(total_of(&rooms), total_bytes) { RoomByNode::new() } else { rooms }
}

fn total_of(rooms: &RoomByNode) -> u64 {
    rooms.values().fold(0, |sum: u64, node| sum.saturating_add(node.total_bytes))
}

/// Reads the memory that each node can give: free memory, and file pages and slabs that can be
/// reclaimed. A node reports no `MemAvailable`; this is an upper bound on it.
fn read_nodes(root: &Root) -> RoomByNode {
    let directory = "sys/devices/system/node";
    let numbers = root.numbered(directory, "node").into_iter();
    numbers
        .filter_map(|number| {
            let path = format!("{directory}/node{number}/meminfo");
            let text = root.document(&path).ok()?;
            let field = |name| proc::bytes(&text, name).and_then(Result::ok);
            // Nodes have no MemAvailable, so it is estimated.
            let reclaimable = ["Active(file)", "Inactive(file)", "SReclaimable"]
                .into_iter()
                .filter_map(field)
                .fold(0, u64::saturating_add);
            let memory = NodeRoom {
                total_bytes: field("MemTotal")?,
                available_bytes: field("MemFree")?.saturating_add(reclaimable),
            };
            Some((NodeId(number), memory))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::{tree as tree_of, write};

    fn tree(machine_kb: u64, nodes_kb: [u64; 2]) -> tempfile::TempDir {
        let text = format!("MemTotal: {machine_kb} kB\nMemAvailable: {machine_kb} kB\n");
        let top = tree_of(&[("proc/meminfo", &text)]);
        for (node, kb) in nodes_kb.into_iter().enumerate() {
            let half = kb / 2;
            let text = format!(
                "Node {node} MemTotal: {kb} kB\nNode {node} MemFree: {half} kB\n\
                 Node {node} Active(file): {half} kB\n",
            );
            write(&top, &format!("sys/devices/system/node/node{node}/meminfo"), &text);
        }
        top
    }

    #[test]
    fn more_than_the_machine_has_is_refused_with_the_figures() {
        let top = tree(8 << 20, [4 << 20, 4 << 20]);
        let limit = MemoryLimit::read(&Root::at(top.path())).unwrap();
        assert_eq!(
            limit.check(9 << 30, None).unwrap_err().to_string(),
            "9216 MiB of memory needed, but only 7936 MiB may be used (MemAvailable of /proc/meminfo): \
             choose a smaller size or fewer cpus at once"
        );
        assert_eq!(limit.check(7 << 30, None), Ok(()));
    }

    #[test]
    fn where_proc_has_only_processes_the_nodes_give_the_memory() {
        let top = tree(8 << 20, [4 << 20, 4 << 20]);
        std::fs::remove_file(top.path().join("proc/meminfo")).unwrap();
        let limit = MemoryLimit::read(&Root::at(top.path())).unwrap();
        assert_eq!((limit.available_bytes, limit.source), (8 << 30, LimitSource::Nodes));
        let empty = tempfile::tempdir().unwrap();
        let error = MemoryLimit::read(&Root::at(empty.path())).unwrap_err();
        assert!(error.to_string().contains("/proc without subset=pid"), "{error}");
    }

    #[test]
    fn more_than_a_node_has_is_refused() {
        let top = tree(8 << 20, [4 << 20, 4 << 20]);
        let limit = MemoryLimit::read(&Root::at(top.path())).unwrap();
        assert_eq!(limit.check(3 << 30, Some(NodeId(1))), Ok(()));
        let error = limit.check(5 << 30, Some(NodeId(1))).unwrap_err();
        assert!(matches!(error, MemoryError::TooLargeForNode { node: NodeId(1), .. }), "{error}");
        assert_eq!(error.class(), ErrorClass::BadInput);
    }

    #[test]
    fn nodes_that_leave_memory_out_refuse_nothing() {
        let top = tree(24 << 20, [4 << 20, 4 << 20]);
        let limit = MemoryLimit::read(&Root::at(top.path())).unwrap();
        assert!(!limit.node_figures_agree());
        assert_eq!(limit.check(5 << 30, Some(NodeId(1))), Ok(()));
    }

    #[test]
    fn the_room_of_nodes_is_unknown_if_their_figures_lack_memory() {
        let top = tree(8 << 20, [4 << 20, 4 << 20]);
        let room = NodeRoom { total_bytes: 4 << 30, available_bytes: 4 << 30 };
        let expected = [(NodeId(0), room), (NodeId(1), room)].into();
        assert_eq!(node_rooms(&Root::at(top.path())), expected);
        let top = tree(24 << 20, [4 << 20, 4 << 20]);
        assert_eq!(node_rooms(&Root::at(top.path())), RoomByNode::new());
    }

    #[test]
    fn a_system_without_meminfo_is_an_error() {
        let top = tempfile::tempdir().unwrap();
        let error = MemoryLimit::read(&Root::at(top.path())).unwrap_err();
        assert_eq!(error, MemoryError::Unknown);
    }
}
