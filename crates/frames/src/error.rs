//! Errors of requests and of initialisation, with their facts.
#![expect(missing_docs, reason = "fields of errors that their names explain")]

use core::fmt;

use crate::ids::{CpuIndex, Frame, NodeIndex, Order, ZoneIndex};

/// Reasons why a machine or its metadata buffer is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InitError {
    /// There are no nodes, or more than [`MAX_NODES`](crate::MAX_NODES).
    #[error("{nodes} nodes: expected 1 to {}", crate::MAX_NODES)]
    NodeCount { nodes: usize },
    /// There are no cpus, or more than [`MAX_CPUS`](crate::MAX_CPUS).
    #[error("{cpus} cpus: expected 1 to {}", crate::MAX_CPUS)]
    CpuCount { cpus: usize },
    /// A cpu is on a node that does not exist.
    #[error("cpu {cpu} is on node {}: expected a node below {nodes}", node.0)]
    CpuNode { cpu: usize, node: NodeIndex, nodes: usize },
    /// A fallback order does not contain every node once, starting with its own.
    #[error("fallback order of node {node}: expected all {nodes} nodes once, {node} first")]
    Fallback { node: usize, nodes: usize },
    /// There are no zones, or more than 8.
    #[error("{zones} zones: expected 1 to 8")]
    ZoneCount { zones: usize },
    /// A zone limit is not above the one before it, or cuts a 2 MiB block.
    #[error("limit {limit:#x} of zone {index}: expected a higher multiple of 2 MiB")]
    ZoneLimit { index: usize, limit: u64 },
    /// A range is empty, or extends above the last zone or 52 bits of address.
    #[error("range {index} of {frames} frames at {start}: expected 1 frame or more below the end")]
    RangeEnd { index: usize, start: Frame, frames: u64 },
    /// A range is on a node that does not exist.
    #[error("range {index} is on node {}: expected a node below {nodes}", node.0)]
    RangeNode { index: usize, node: NodeIndex, nodes: usize },
    /// A range starts below the end of the one before it.
    #[error(
        "range {index} at {start} overlaps or precedes the one before it: expected ascending ranges"
    )]
    RangeOrder { index: usize, start: Frame },
    /// The metadata buffer is too small.
    #[error("{words} words of metadata: expected {expected}")]
    Metadata { words: usize, expected: usize },
    /// The cell already contains an allocator.
    #[error("already initialised")]
    Again,
}

/// Reasons why no frames were allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllocError {
    /// Every eligible frame is in use, or no eligible run of this length is free.
    #[error("no {frames} contiguous eligible frames, including those in cpus' caches")]
    Exhausted { frames: u64 },
    /// As `Exhausted`, but the call interrupted another call on its cpu and could not use the
    /// caches.
    #[error(
        "no {frames} contiguous eligible frames outside the caches, which an interrupted call holds"
    )]
    ExhaustedNested { frames: u64 },
    /// The cpu does not exist.
    #[error("cpu {}: expected one below {cpus}", cpu.0)]
    UnknownCpu { cpu: CpuIndex, cpus: usize },
    /// The node does not exist.
    #[error("node {}: expected one below {nodes}", node.0)]
    UnknownNode { node: NodeIndex, nodes: usize },
    /// The zone does not exist.
    #[error("zone {}: expected one below {zones}", zone.0)]
    UnknownZone { zone: ZoneIndex, zones: usize },
    /// The run has no frames, or more than [`MAX_RUN_FRAMES`](crate::MAX_RUN_FRAMES).
    #[error("a run of {frames} frames: expected 1 to {}", crate::MAX_RUN_FRAMES)]
    RunLength { frames: u64 },
    /// An interleave policy gives every node of its mask the weight 0.
    #[error("interleave over no node: expected a node with a weight above 0")]
    NoWeight,
}

/// The place of a frame that was freed twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreePlace {
    /// In the maps shared by all cpus.
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

/// Reasons why frames were not freed; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FreeError {
    /// The frame is already free.
    #[error("frame {frame} is already free, {place}")]
    AlreadyFree { frame: Frame, place: FreePlace },
    /// The frame is not in any range of the machine.
    #[error("frame {frame} is not managed: expected a frame of the memory map")]
    NotManaged { frame: Frame },
    /// The frame's range is offline.
    #[error("frame {frame} is offline")]
    Offline { frame: Frame },
    /// The frame is not the first of a block of the order.
    #[error("frame {frame}: expected a multiple of {} frames", order.frames())]
    Misaligned { frame: Frame, order: Order },
    /// The run has no frames, or more than [`MAX_RUN_FRAMES`](crate::MAX_RUN_FRAMES).
    #[error("a run of {frames} frames: expected 1 to {}", crate::MAX_RUN_FRAMES)]
    RunLength { frames: u64 },
    /// The cpu does not exist.
    #[error("cpu {}: expected one below {cpus}", cpu.0)]
    UnknownCpu { cpu: CpuIndex, cpus: usize },
    /// The frames extend beyond the allocated run (`checked` builds).
    #[cfg(feature = "checked")]
    #[error("{frames} frames at {frame}: expected at most {left}, up to the end of its run")]
    WrongSize {
        frame: Frame,
        frames: u64,
        /// Number of frames from `frame` to the end of its allocated run.
        left: u64,
    },
    /// The frames were allocated for another owner (`checked` builds).
    #[cfg(feature = "checked")]
    #[error("frame {frame} belongs to owner {}, freed by owner {}", expected.0, found.0)]
    WrongOwner { frame: Frame, expected: crate::Owner, found: crate::Owner },
}

/// Reasons why a range was not brought online or taken offline; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// An end is neither on a 2 MiB boundary nor at the end of a declared range.
    #[error("range end {frame}: expected a multiple of 512 frames or the end of a declared range")]
    Misaligned { frame: Frame },
    /// The range is not wholly in declared memory.
    #[error("frame {frame} is not in the memory map: expected memory declared at the start")]
    NotManaged { frame: Frame },
    /// The range has frames in use, so it cannot be taken offline.
    #[error("frame {frame} is in use: expected only free frames")]
    InUse { frame: Frame },
    /// A part of the range is already online (or offline).
    #[error("frame {frame} is already online or offline")]
    StateAlready { frame: Frame },
    /// The cpu does not exist.
    #[error("cpu {}: expected one below {cpus}", cpu.0)]
    UnknownCpu { cpu: CpuIndex, cpus: usize },
    /// The call interrupted another one on its cpu.
    #[error("called from an interrupt of another call: expected an outermost call")]
    Nested,
}
