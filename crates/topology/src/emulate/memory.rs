//! Assignment of memory to emulated nodes.

use alloc::vec::Vec;

use super::EmulationError;
use crate::id::NodeId;
use crate::machine::Machine;
use crate::memory::MemoryRange;
use crate::node::Node;
use crate::order;

/// Cuts are on huge page boundaries.
const GRANULE_BYTES: u64 = 2 << 20;
/// Cuts of small memories are on page boundaries.
const PAGE_BYTES: u64 = 4096;

/// A stretch of usable memory on one physical node.
#[derive(Clone, Debug)]
struct MemoryPiece {
    node: NodeId,
    bytes: u64,
    /// The physical range, if known.
    range: Option<MemoryRange>,
}

/// Usable memory in order, without holes.
pub(super) struct Pool {
    pieces: Vec<MemoryPiece>,
}

/// The memory of one emulated node.
#[derive(Clone, Debug, Default)]
pub(super) struct Share {
    pieces: Vec<MemoryPiece>,
    /// Bytes requested from a machine with unknown memory.
    unplaced_bytes: u64,
}

impl Share {
    pub(super) fn bytes(&self) -> u64 {
        let sum = |sum: u64, piece: &MemoryPiece| sum.saturating_add(piece.bytes);
        self.pieces.iter().fold(self.unplaced_bytes, sum)
    }

    /// Returns the physical node of its first byte.
    pub(super) fn home(&self) -> Option<NodeId> {
        self.pieces.first().map(|piece| piece.node)
    }

    /// Returns its ranges, as ranges of node `id`.
    pub(super) fn ranges(&self, id: NodeId) -> impl Iterator<Item = MemoryRange> + '_ {
        let known = self.pieces.iter().filter_map(|piece| piece.range.clone());
        known.map(move |range| MemoryRange { node: id, ..range })
    }
}

impl Pool {
    /// Creates the pool of the memory of all nodes.
    pub(super) fn of_machine(machine: &Machine) -> Self {
        let mut pieces = Vec::new();
        for node in &machine.nodes {
            pieces.extend(Self::of_node(machine, node).pieces);
        }
        Self { pieces }
    }

    /// Creates the pool of one node's memory: its ranges, or its size if no range is known.
    pub(super) fn of_node(machine: &Machine, node: &Node) -> Self {
        let own = |range: &&MemoryRange| range.node == node.id && range.length_bytes > 0;
        let mut pieces: Vec<MemoryPiece> = machine
            .ranges
            .iter()
            .filter(own)
            .map(|range| MemoryPiece {
                node: node.id,
                bytes: range.length_bytes,
                range: Some(range.clone()),
            })
            .collect();
        order::by_key(&mut pieces, |piece| piece.range.as_ref().map(|range| range.base));
        if pieces.is_empty() && node.memory_bytes > 0 {
            pieces.push(MemoryPiece { node: node.id, bytes: node.memory_bytes, range: None });
        }
        Self { pieces }
    }

    fn bytes(&self) -> u64 {
        let sum = |sum: u64, piece: &MemoryPiece| sum.saturating_add(piece.bytes);
        self.pieces.iter().fold(0, sum)
    }

    /// Cuts the memory into equal parts.
    pub(super) fn split(self, parts: usize) -> Vec<Share> {
        let total = self.bytes();
        let parts_wide = u128::try_from(parts.max(1)).unwrap_or(1);
        let even = total / u64::try_from(parts_wide).unwrap_or(1);
        let granule = if even >= GRANULE_BYTES { GRANULE_BYTES } else { PAGE_BYTES };
        let cut = |index: usize| {
            if index == parts {
                return total;
            }
            let exact = u128::from(total) * (index as u128) / parts_wide;
            let exact = u64::try_from(exact).unwrap_or(total);
            exact - exact % granule
        };
        let sizes: Vec<u64> = (0..parts).map(|index| cut(index + 1) - cut(index)).collect();
        self.deal(&sizes)
    }

    /// Takes these sizes off the memory, in order.
    pub(super) fn take(self, sizes: &[u64]) -> Result<Vec<Share>, EmulationError> {
        let asked = sizes.iter().try_fold(0u64, |sum, &size| sum.checked_add(size));
        let present_bytes = self.bytes();
        match asked {
            Some(_) if self.pieces.is_empty() => Ok(unplaced(sizes)),
            Some(asked) if asked <= present_bytes => Ok(self.deal(sizes)),
            asked => Err(EmulationError::Memory {
                asked_bytes: asked.unwrap_or(u64::MAX),
                present_bytes,
            }),
        }
    }

    fn deal(self, sizes: &[u64]) -> Vec<Share> {
        let mut pieces = self.pieces.into_iter();
        let mut current = pieces.next();
        let mut shares = Vec::new();
        for &size in sizes {
            let mut share = Share::default();
            let mut wanted = size;
            while let Some(piece) = current.take_if(|_| wanted > 0) {
                let (taken, rest) = cut(piece, wanted);
                wanted -= taken.bytes;
                share.pieces.push(taken);
                current = rest.or_else(|| pieces.next());
            }
            shares.push(share);
        }
        shares
    }
}

fn unplaced(sizes: &[u64]) -> Vec<Share> {
    let share = |&unplaced_bytes: &u64| Share { pieces: Vec::new(), unplaced_bytes };
    sizes.iter().map(share).collect()
}

/// Cuts a piece after `bytes`: returns the front, and the rest if there is one.
fn cut(piece: MemoryPiece, bytes: u64) -> (MemoryPiece, Option<MemoryPiece>) {
    if bytes >= piece.bytes {
        return (piece, None);
    }
    let part = |offset: u64, length_bytes: u64| MemoryPiece {
        node: piece.node,
        bytes: length_bytes,
        range: piece.range.as_ref().map(|range| MemoryRange {
            base: range.base.saturating_add(offset),
            length_bytes,
            ..range.clone()
        }),
    };
    (part(0, bytes), Some(part(bytes, piece.bytes - bytes)))
}
