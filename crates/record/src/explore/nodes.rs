//! What each node's memory is used for, and how well its free memory hangs together.

use std::collections::BTreeMap;

use numalab_topology::{CpuSet, HugePagePool, NodeId};
use serde::{Deserialize, Serialize};

use super::{Unseen, spread};

/// The nodes of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodesView {
    /// The nodes by number.
    pub nodes: Vec<NodeView>,
    /// What the kernel moved since boot.
    pub migrations_since_boot: Option<Migrations>,
    /// The same in a second.
    pub migrations_rates: Option<Migrations>,
    /// Bytes of a page.
    pub base_page_bytes: u64,
    /// A huge page is a block of this order.
    pub huge_order: u32,
    /// What is missing here and who could see it.
    pub unseen: Vec<Unseen>,
}

/// One node's memory, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeView {
    /// The node.
    pub node: NodeId,
    /// The tier of its memory, where the system has tiers.
    pub tier: Option<u32>,
    /// Its cpus.
    pub cpus: CpuSet,
    /// All of it.
    pub total_bytes: u64,
    /// Free.
    pub free_bytes: u64,
    /// Page cache.
    pub page_cache_bytes: u64,
    /// Anonymous.
    pub anonymous_bytes: u64,
    /// Of these, in transparent huge pages.
    pub transparent_huge_bytes: u64,
    /// The kernel's slab caches.
    pub slab_bytes: u64,
    /// Of these, such as the kernel can give back.
    pub slab_reclaimable_bytes: u64,
    /// Pools of reserved huge pages.
    pub huge_pages: Vec<HugePagePool>,
    /// Its zones.
    pub zones: Vec<ZoneView>,
    /// The share of its free memory that cannot serve a huge page, 0 to 1.
    pub fragmentation: Option<f64>,
    /// Pages since boot.
    pub since_boot: Option<Counters>,
    /// Pages a second.
    pub rates: Option<Counters>,
    /// Pages promoted and demoted since boot.
    pub moves_since_boot: Option<TierMoves>,
    /// The same in a second.
    pub moves_rates: Option<TierMoves>,
}

impl NodeView {
    /// Bytes that are free or can be freed at once: page cache and reclaimable slab.
    #[must_use]
    pub fn available_bytes(&self) -> u64 {
        self.free_bytes
            .saturating_add(self.page_cache_bytes)
            .saturating_add(self.slab_reclaimable_bytes)
    }
}

/// Pages since boot, or pages in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counters {
    /// Meant for this node and got there.
    pub hit: f64,
    /// Meant for another node, came here.
    pub miss: f64,
    /// Meant for this node, went elsewhere.
    pub foreign: f64,
    /// Interleaved here as meant.
    pub interleave_hit: f64,
    /// Taken by a process that ran on this node.
    pub local: f64,
    /// Taken by a process that ran elsewhere.
    pub other: f64,
}

impl Counters {
    /// The share of the allocations meant for this node that went elsewhere, 0 to 1.
    #[must_use]
    pub fn foreign_share(&self) -> Option<f64> {
        let meant = self.hit + self.foreign;
        (meant > 0.0).then(|| self.foreign / meant)
    }
}

/// Pages that came to a node by promotion and left it by demotion: since boot, or in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TierMoves {
    /// Promoted to this node.
    pub promoted: f64,
    /// Found hot enough to be promoted to it.
    pub candidates: f64,
    /// Demoted from this node.
    pub demoted: f64,
}

/// Pages that the kernel moved on the whole machine: since boot, or in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Migrations {
    /// By NUMA balancing, promotions included.
    pub balanced: f64,
    /// For any reason, compaction and demotion included.
    pub moved: f64,
    /// That could not be moved.
    pub failed: f64,
}

/// A zone of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ZoneView {
    /// Its name: `DMA`, `DMA32`, `Normal`, `Movable`.
    pub name: String,
    /// Free blocks by order: of 1, 2, 4, … pages.
    pub free_blocks: Vec<u64>,
    /// Pages that the kernel manages in it.
    pub managed_pages: Option<u64>,
    /// Pages below which allocations look elsewhere and reclaim begins (`low`).
    pub low_pages: Option<u64>,
    /// Pageblocks by what may be in them, where root reads them: `Movable` and so on.
    pub pageblocks: BTreeMap<String, u64>,
}

impl ZoneView {
    /// Free pages.
    #[must_use]
    pub fn free_pages(&self) -> u64 {
        self.pages_from(0)
    }

    /// Free pages in blocks of at least this order.
    #[must_use]
    pub fn pages_from(&self, order: u32) -> u64 {
        let pages = |(order, blocks): (u32, &u64)| {
            blocks.saturating_mul(1_u64.checked_shl(order).unwrap_or(0))
        };
        let all = (0_u32..).zip(&self.free_blocks);
        all.filter(|(at, _)| *at >= order).map(pages).fold(0, u64::saturating_add)
    }
}

/// The share of free pages that cannot serve a block of `order`, 0 to 1 (Gorman's index of
/// unusable free space); nothing free has none.
#[must_use]
pub fn fragmentation(zones: &[ZoneView], order: u32) -> Option<f64> {
    let sum = |from| zones.iter().map(|zone| zone.pages_from(from)).fold(0, u64::saturating_add);
    spread::ratio(sum(order), sum(0)).map(|usable| 1.0 - usable)
}
