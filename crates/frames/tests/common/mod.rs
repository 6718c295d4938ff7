//! Machines for tests, with their metadata.
#![allow(dead_code, clippy::allow_attributes, reason = "each test file uses its own part")]

use numalab_frames::{
    CpuFences, Fences, Frame, Frames, Machine, MemoryRange, NodeIndex, RangeState, Word,
};

/// A machine with owned tables.
pub struct Tables {
    pub ranges: Vec<MemoryRange>,
    pub zone_limits: Vec<u64>,
    pub cpus: Vec<NodeIndex>,
    pub fallback: Vec<Vec<NodeIndex>>,
}

/// Tables that are leaked, like the metadata of each allocator, so that threads may share them.
pub struct Bench {
    pub machine: Machine<'static>,
}

impl Bench {
    pub fn new(tables: Tables) -> Self {
        let fallback: Vec<&'static [NodeIndex]> =
            tables.fallback.into_iter().map(|order| &*order.leak()).collect();
        let machine = Machine {
            ranges: tables.ranges.leak(),
            zone_limits: tables.zone_limits.leak(),
            cpus: tables.cpus.leak(),
            fallback: fallback.leak(),
        };
        Self { machine }
    }

    pub fn frames(&self) -> Frames<'static> {
        self.frames_with(CpuFences)
    }

    pub fn frames_with<F: Fences>(&self, fences: F) -> Frames<'static, F> {
        Frames::new(self.machine, self.metadata(), fences).unwrap()
    }

    pub fn metadata(&self) -> &'static mut [Word] {
        let words = self.machine.metadata_words().unwrap();
        (0..words).map(|_| Word::new(0)).collect::<Vec<_>>().leak()
    }
}

pub fn range(start: u64, frames: u64, node: u16) -> MemoryRange {
    MemoryRange {
        start: Frame::new(start),
        frames,
        node: NodeIndex(node),
        state: RangeState::Online,
    }
}

/// Nodes in a ring: after each, the next ones by number.
pub fn ring(nodes: u16) -> Vec<Vec<NodeIndex>> {
    (0..nodes).map(|n| (0..nodes).map(|k| NodeIndex((n + k) % nodes)).collect()).collect()
}

/// Returns two nodes with this number of frames each, from frame 0 on, and one cpu each.
pub fn two_nodes(frames: u64) -> Tables {
    Tables {
        ranges: vec![range(0, frames, 0), range(frames, frames, 1)],
        zone_limits: vec![u64::MAX],
        cpus: vec![NodeIndex(0), NodeIndex(1)],
        fallback: ring(2),
    }
}
