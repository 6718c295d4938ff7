//! What can be wrong with a request, with the facts of the case.

use core::fmt;

use crate::ids::{CpuIndex, Frame, NodeIndex, Order, ZoneIndex};

/// Why a machine or its metadata buffer is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InitError {
    /// No node, or more than [`MAX_NODES`](crate::MAX_NODES).
    #[error("{nodes} nodes: expected 1 to {}", crate::MAX_NODES)]
    NodeCount {
        /// Rows of the fallback table.
        nodes: usize,
    },
    /// No cpu, or more than [`MAX_CPUS`](crate::MAX_CPUS).
    #[error("{cpus} cpus: expected 1 to {}", crate::MAX_CPUS)]
    CpuCount {
        /// Entries of the cpu table.
        cpus: usize,
    },
    /// A cpu on a node that is not there.
    #[error("cpu {cpu} is on node {}: expected a node below {nodes}", node.0)]
    CpuNode {
        /// The cpu.
        cpu: usize,
        /// Its node.
        node: NodeIndex,
        /// How many nodes there are.
        nodes: usize,
    },
    /// A fallback order that does not name every node once, its own first.
    #[error("fallback order of node {node}: expected all {nodes} nodes once, {node} first")]
    Fallback {
        /// The node whose order it is.
        node: usize,
        /// How many nodes there are.
        nodes: usize,
    },
    /// A distance table of the wrong size.
    #[error("{entries} distances: expected none or {expected}")]
    Distances {
        /// Entries given.
        entries: usize,
        /// The square of the number of nodes.
        expected: usize,
    },
    /// No zone, or more than 8.
    #[error("{zones} zones: expected 1 to 8")]
    ZoneCount {
        /// Limits given.
        zones: usize,
    },
    /// A zone limit that does not ascend, or cuts a 2 MiB block.
    #[error("limit {limit:#x} of zone {index}: expected a higher multiple of 2 MiB")]
    ZoneLimit {
        /// The zone.
        index: usize,
        /// Its limit in bytes.
        limit: u64,
    },
    /// A range that is empty, or reaches above the last zone or 52 bits of address.
    #[error("range {index} of {frames} frames at {start}: expected 1 frame or more below the end")]
    RangeEnd {
        /// The range.
        index: usize,
        /// Its first frame.
        start: Frame,
        /// Its length.
        frames: u64,
    },
    /// A range of a node that is not there.
    #[error("range {index} is on node {}: expected a node below {nodes}", node.0)]
    RangeNode {
        /// The range.
        index: usize,
        /// Its node.
        node: NodeIndex,
        /// How many nodes there are.
        nodes: usize,
    },
    /// A range that starts below the end of the one before it.
    #[error(
        "range {index} at {start} overlaps or precedes the one before: expected them ascending"
    )]
    RangeOrder {
        /// The range.
        index: usize,
        /// Its first frame.
        start: Frame,
    },
    /// A metadata buffer that is too small.
    #[error("{words} words of metadata: expected {expected}")]
    Metadata {
        /// Words given.
        words: usize,
        /// Words needed.
        expected: usize,
    },
    /// The cell holds an allocator already.
    #[error("initialised already")]
    Again,
}

/// Why no frames were handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllocError {
    /// Every eligible frame is in use, or no eligible run of this length is free.
    #[error("no {frames} eligible frames in a row, also not in any cpu's cache")]
    Exhausted {
        /// Length of the run asked for.
        frames: u64,
    },
    /// As `Exhausted`, but the call interrupted another call on its cpu and could not look into
    /// the caches.
    #[error(
        "no {frames} eligible frames in a row outside the caches, which an interrupted call holds"
    )]
    ExhaustedNested {
        /// Length of the run asked for.
        frames: u64,
    },
    /// A cpu that is not there.
    #[error("cpu {}: expected one below {cpus}", cpu.0)]
    UnknownCpu {
        /// The cpu.
        cpu: CpuIndex,
        /// How many cpus there are.
        cpus: usize,
    },
    /// A node that is not there.
    #[error("node {}: expected one below {nodes}", node.0)]
    UnknownNode {
        /// The node.
        node: NodeIndex,
        /// How many nodes there are.
        nodes: usize,
    },
    /// A zone that is not there.
    #[error("zone {}: expected one below {zones}", zone.0)]
    UnknownZone {
        /// The zone.
        zone: ZoneIndex,
        /// How many zones there are.
        zones: usize,
    },
    /// A run of no frames, or of more than [`MAX_RUN_FRAMES`](crate::MAX_RUN_FRAMES).
    #[error("a run of {frames} frames: expected 1 to {}", crate::MAX_RUN_FRAMES)]
    RunLength {
        /// The length asked for.
        frames: u64,
    },
    /// An interleave policy that gives every node of its mask the weight 0.
    #[error("interleave over no node: expected a node with a weight above 0")]
    NoWeight,
}

/// Where a frame that was freed twice lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreePlace {
    /// In the shared maps.
    Shared,
    /// In this cpu's cache.
    Cache(CpuIndex),
}

impl fmt::Display for FreePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shared => f.write_str("in the shared maps"),
            Self::Cache(cpu) => write!(f, "in the cache of cpu {}", cpu.0),
        }
    }
}

/// Why frames were not taken back; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FreeError {
    /// The frame is free.
    #[error("frame {frame} is free already, {place}")]
    AlreadyFree {
        /// The first such frame.
        frame: Frame,
        /// Where it lies.
        place: FreePlace,
    },
    /// No range of the machine has the frame.
    #[error("frame {frame} is not managed: expected a frame of the memory map")]
    NotManaged {
        /// The first such frame.
        frame: Frame,
    },
    /// The frame's range is offline.
    #[error("frame {frame} is offline")]
    Offline {
        /// The first such frame.
        frame: Frame,
    },
    /// The frame does not start a block of the order.
    #[error("frame {frame}: expected a multiple of {} frames", order.frames())]
    Misaligned {
        /// The frame.
        frame: Frame,
        /// The order it was said to have.
        order: Order,
    },
    /// A run of no frames, or of more than [`MAX_RUN_FRAMES`](crate::MAX_RUN_FRAMES).
    #[error("a run of {frames} frames: expected 1 to {}", crate::MAX_RUN_FRAMES)]
    RunLength {
        /// The length given.
        frames: u64,
    },
    /// A cpu that is not there.
    #[error("cpu {}: expected one below {cpus}", cpu.0)]
    UnknownCpu {
        /// The cpu.
        cpu: CpuIndex,
        /// How many cpus there are.
        cpus: usize,
    },
    /// The frames reach beyond the run that was handed out (`checked` builds).
    #[cfg(feature = "checked")]
    #[error("{frames} frames at {frame}: expected at most the {left} that are left of its run")]
    WrongSize {
        /// The first frame.
        frame: Frame,
        /// The length given.
        frames: u64,
        /// Frames from `frame` to the end of the run it was handed out in.
        left: u64,
    },
    /// The frames were handed out to someone else (`checked` builds).
    #[cfg(feature = "checked")]
    #[error("frame {frame} belongs to owner {}, freed by owner {}", expected.0, found.0)]
    WrongOwner {
        /// The frame.
        frame: Frame,
        /// Whom it was handed out to.
        expected: crate::Owner,
        /// Who freed it.
        found: crate::Owner,
    },
}

/// Why a range was not brought online or taken offline; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// An end that is neither on a 2 MiB boundary nor at the end of a declared range.
    #[error("range end {frame}: expected a multiple of 512 frames or the end of a declared range")]
    Misaligned {
        /// The end.
        frame: Frame,
    },
    /// Not wholly in declared memory.
    #[error("frame {frame} is not in the memory map: expected memory declared at the start")]
    NotManaged {
        /// The first such frame.
        frame: Frame,
    },
    /// Frames that are in use cannot be taken offline.
    #[error("frame {frame} is in use: expected only free frames")]
    InUse {
        /// The first such frame.
        frame: Frame,
    },
    /// Part of the range is online (or offline) already.
    #[error("frame {frame} is online or offline already")]
    StateAlready {
        /// The first such frame.
        frame: Frame,
    },
    /// A cpu that is not there.
    #[error("cpu {}: expected one below {cpus}", cpu.0)]
    UnknownCpu {
        /// The cpu.
        cpu: CpuIndex,
        /// How many cpus there are.
        cpus: usize,
    },
    /// The call interrupted another one on its cpu.
    #[error("called from an interrupt of another call: expected an outermost call")]
    Nested,
}
