//! The description of the machine for the allocator, and its validation.

use crate::error::InitError;
use crate::ids::{BLOCK_FRAMES, FRAME_BYTES, Frame, MAX_CPUS, MAX_NODES, NodeIndex, NodeMask};

/// The zones of a PC: DMA below 16 MiB, DMA32 below 4 GiB, Normal.
pub const PC_ZONE_LIMITS: [u64; 3] = [16 << 20, 4 << 30, u64::MAX];

/// Highest frame number plus one: 52 bits of physical address.
const FRAMES_END: u64 = 1 << 40;

/// The initial state of a range's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeState {
    /// Present, and available for allocation.
    Online,
    /// Declared only (hot-pluggable in the SRAT): none of its frames is allocated before
    /// [`Frames::online`](crate::Frames::online).
    Offline,
}

/// Consecutive frames of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRange {
    /// The first frame.
    pub start: Frame,
    /// Number of frames.
    pub frames: u64,
    /// The node they belong to.
    pub node: NodeIndex,
    /// Initial state of the frames.
    pub state: RangeState,
}

/// A machine as the allocator sees it; every part is borrowed.
#[derive(Clone, Copy, Debug)]
pub struct Machine<'m> {
    /// The memory: ascending, disjoint; ranges need no alignment and may leave holes. Memory that
    /// may be added later is declared here too, as [`RangeState::Offline`].
    pub ranges: &'m [MemoryRange],
    /// The exclusive upper address of each zone in bytes, ascending, whole blocks of 2 MiB; the
    /// last covers all memory ([`u64::MAX`] always does). See [`PC_ZONE_LIMITS`].
    pub zone_limits: &'m [u64],
    /// The node of each cpu.
    pub cpus: &'m [NodeIndex],
    /// For each node, all nodes, nearest first and itself first: usually in the order of the
    /// distance table.
    pub fallback: &'m [&'m [NodeIndex]],
}

/// A part of a range that is in one zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ZonePiece {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) pool: usize,
    pub(crate) online: bool,
}

impl ZonePiece {
    /// Returns the number of 2 MiB blocks that the piece touches.
    pub(crate) const fn blocks(&self) -> u64 {
        self.end.div_ceil(BLOCK_FRAMES) - self.start / BLOCK_FRAMES
    }
}

impl<'m> Machine<'m> {
    /// Returns the number of nodes.
    pub const fn nodes(&self) -> usize {
        self.fallback.len()
    }

    /// Returns the number of pools (a pool is the part of a zone on a node).
    pub(crate) const fn pools(&self) -> usize {
        self.nodes() * self.zone_limits.len()
    }

    pub(crate) const fn pool(&self, node: NodeIndex, zone: usize) -> usize {
        node.at() * self.zone_limits.len() + zone
    }

    /// Returns the ranges in address order: contiguous ranges of a node are joined, and all are cut
    /// at the zone limits.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = ZonePiece> + use<'m> {
        let machine = *self;
        let mut ranges = machine.ranges.iter().peekable();
        let mut current: Option<MemoryRange> = None;
        core::iter::from_fn(move || {
            let mut range = current.take().or_else(|| ranges.next().copied())?;
            while let Some(next) = ranges.next_if(|next| joins(&range, next)) {
                range.frames += next.frames;
            }
            let (start, end) = (range.start.number(), range.start.number() + range.frames);
            let zone = machine.zone_of(start)?;
            let cut = end.min(machine.zone_end(zone));
            if cut < end {
                current = Some(MemoryRange { start: Frame::new(cut), frames: end - cut, ..range });
            }
            let pool = machine.pool(range.node, zone);
            Some(ZonePiece { start, end: cut, pool, online: range.state == RangeState::Online })
        })
    }

    /// Returns the first frame above a zone.
    pub(crate) const fn zone_end(&self, zone: usize) -> u64 {
        self.zone_limits[zone] / FRAME_BYTES
    }

    fn zone_of(&self, frame: u64) -> Option<usize> {
        (0..self.zone_limits.len()).find(|&zone| frame < self.zone_end(zone))
    }

    /// Refuses machines that the allocator cannot serve.
    pub(crate) fn check(&self) -> Result<(), InitError> {
        self.check_nodes()?;
        self.check_zones()?;
        for (index, range) in self.ranges.iter().enumerate() {
            self.check_range(index, range)?;
        }
        Ok(())
    }

    fn check_nodes(&self) -> Result<(), InitError> {
        let nodes = self.nodes();
        if nodes == 0 || nodes > MAX_NODES {
            return Err(InitError::NodeCount { nodes });
        }
        if self.cpus.is_empty() || self.cpus.len() > MAX_CPUS {
            return Err(InitError::CpuCount { cpus: self.cpus.len() });
        }
        if let Some(cpu) = self.cpus.iter().position(|node| node.at() >= nodes) {
            return Err(InitError::CpuNode { cpu, node: self.cpus[cpu], nodes });
        }
        for (node, order) in self.fallback.iter().enumerate() {
            let seen: NodeMask = order.iter().copied().collect();
            let complete = (0..=u16::MAX).take(nodes).all(|n| seen.contains(NodeIndex(n)));
            let own_first = order.first().is_some_and(|first| first.at() == node);
            if !complete || !own_first || order.len() != nodes {
                return Err(InitError::Fallback { node, nodes });
            }
        }
        Ok(())
    }

    fn check_zones(&self) -> Result<(), InitError> {
        let block_bytes = BLOCK_FRAMES * FRAME_BYTES;
        let limits = self.zone_limits;
        if limits.is_empty() || limits.len() > 8 {
            return Err(InitError::ZoneCount { zones: limits.len() });
        }
        for (index, &limit) in limits.iter().enumerate() {
            let ascends = index == 0 || limits[index - 1] < limit;
            if !ascends || limit < block_bytes || (limit != u64::MAX && limit % block_bytes != 0) {
                return Err(InitError::ZoneLimit { index, limit });
            }
        }
        Ok(())
    }

    fn check_range(&self, index: usize, range: &MemoryRange) -> Result<(), InitError> {
        let start = range.start;
        let Some(end) = start.number().checked_add(range.frames) else {
            return Err(InitError::RangeEnd { index, start, frames: range.frames });
        };
        let zones_end = self.zone_end(self.zone_limits.len() - 1);
        if range.frames == 0 || end > FRAMES_END || end > zones_end {
            return Err(InitError::RangeEnd { index, start, frames: range.frames });
        }
        if range.node.at() >= self.nodes() {
            return Err(InitError::RangeNode { index, node: range.node, nodes: self.nodes() });
        }
        let below = index.checked_sub(1).map(|previous| &self.ranges[previous]);
        if below.is_some_and(|below| below.start.number() + below.frames > start.number()) {
            return Err(InitError::RangeOrder { index, start });
        }
        Ok(())
    }
}

fn joins(range: &MemoryRange, next: &MemoryRange) -> bool {
    range.start.number() + range.frames == next.start.number()
        && range.node == next.node
        && range.state == next.state
}
