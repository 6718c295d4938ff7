//! The memory that nodes have left.

use std::collections::BTreeMap;

use numalab_topology::NodeId;
use serde::{Deserialize, Serialize};

use super::spread;

/// The memory of each node; missing nodes are unknown.
pub type RoomByNode = BTreeMap<NodeId, NodeRoom>;

/// The share of available memory below which a node counts as full.
pub const FULL: f64 = 0.04;

/// The memory of a node, in bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct NodeRoom {
    /// Total memory; 0 for a node without memory.
    pub total_bytes: u64,
    /// The part that is free or can be reclaimed: page cache and slabs.
    pub available_bytes: u64,
}

/// Room in a node's pool of reserved huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HugeRoom {
    pub node: NodeId,
    /// The size of a page in bytes.
    pub page_bytes: u64,
    /// The number of free pages.
    pub free: u64,
}

impl NodeRoom {
    /// Returns the share that is free or can be reclaimed, from 0 to 1; `None` for a node without
    /// memory.
    pub fn available_share(self) -> Option<f64> {
        spread::ratio(self.available_bytes.min(self.total_bytes), self.total_bytes)
    }

    /// Returns the bytes that the node can take before it counts as full.
    pub fn left_bytes(self) -> u64 {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small share of a size"
        )]
        let kept = (self.total_bytes as f64 * FULL) as u64;
        self.available_bytes.min(self.total_bytes).saturating_sub(kept)
    }
}
