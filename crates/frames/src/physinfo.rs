//! The machine and its free memory as one structure, like Xen's `XEN_SYSCTL_physinfo` and
//! `XEN_SYSCTL_numainfo` for a toolstack.

use crate::fences::Fences;
use crate::frames::Frames;
use crate::ids::{Frame, NodeIndex};
use crate::info::{Counters, MemoryInfo};
use crate::sync::low_u16;

/// The memory and the counters of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeInfo {
    /// Its memory in all zones together.
    pub memory: MemoryInfo,
    /// The counters of its cpus.
    pub counters: Counters,
    /// Number of its cpus.
    pub cpus: usize,
}

/// The whole machine.
#[derive(Clone, Copy, Debug)]
pub struct PhysInfo<'a> {
    /// Each node.
    pub nodes: &'a [NodeInfo],
    /// The node of each cpu.
    pub cpus: &'a [NodeIndex],
    /// For each node, all nodes, nearest first.
    pub fallback: &'a [&'a [NodeIndex]],
    /// The distance table, row by row; empty if the machine was described without one.
    pub distances: &'a [u8],
}

impl PhysInfo<'_> {
    /// Returns the number of online frames.
    pub fn managed(&self) -> u64 {
        self.nodes.iter().map(|node| node.memory.managed).sum()
    }

    /// Returns the number of free frames, including those in caches.
    pub fn free(&self) -> u64 {
        self.nodes.iter().map(|node| node.memory.free + node.memory.cached).sum()
    }

    /// Returns the distance between two nodes, if it is known.
    pub fn distance(&self, from: NodeIndex, to: NodeIndex) -> Option<u8> {
        let nodes = self.nodes.len();
        let known = from.at() < nodes && to.at() < nodes;
        known.then(|| self.distances.get(from.at() * nodes + to.at()).copied()).flatten()
    }
}

impl<'m, F: Fences> Frames<'m, F> {
    /// Returns the current state of the machine; `nodes` receives one entry for each node, and the
    /// result is `None` if it is too short.
    pub fn phys_info<'a>(&self, nodes: &'a mut [NodeInfo]) -> Option<PhysInfo<'a>>
    where
        'm: 'a,
    {
        let nodes = nodes.get_mut(..self.machine.nodes())?;
        for (number, info) in nodes.iter_mut().enumerate() {
            let node = NodeIndex(low_u16(number));
            *info = NodeInfo {
                memory: self.node_info(node),
                counters: self.counters(node),
                cpus: self.machine.cpus.iter().filter(|&&home| home == node).count(),
            };
        }
        let machine = &self.machine;
        Some(PhysInfo {
            nodes,
            cpus: machine.cpus,
            fallback: machine.fallback,
            distances: machine.distances,
        })
    }

    /// Returns the node that a frame belongs to, if it is in the memory map.
    pub fn node_of(&self, frame: Frame) -> Option<NodeIndex> {
        let region = self.shared.map.find(frame.number())?;
        Some(NodeIndex(low_u16(region.pool / self.machine.zone_limits.len())))
    }
}
