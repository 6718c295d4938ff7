//! Use of each node's memory, and fragmentation of its free memory.

use std::collections::BTreeMap;

use numalab_topology::{CpuSet, Finding, HugePagePool, NodeId};
use serde::{Deserialize, Serialize};

use super::{Unseen, spread};

/// The nodes of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NodesView {
    /// The nodes by number.
    pub nodes: Vec<NodeView>,
    /// Pages that the kernel has moved since boot.
    pub migrations_since_boot: Option<Migrations>,
    /// Pages that the kernel moves per second.
    pub migrations_rates: Option<Migrations>,
    /// The size of a base page in bytes; `None` if a copied tree does not show it.
    pub base_page_bytes: Option<u64>,
    /// The order of a huge page, if the size of a base page is known.
    pub huge_order: Option<u32>,
    /// The facts that could not be read, with the user who could read them.
    pub unseen: Vec<Unseen>,
    /// Contradictions and nonsense in the files that describe the machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub odd: Vec<Finding>,
}

/// One node's memory, in bytes. A size is `None` where the system does not report it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NodeView {
    pub node: NodeId,
    /// The tier of the node's memory, if the system has tiers.
    pub tier: Option<u32>,
    /// The node's cpus.
    pub cpus: CpuSet,
    pub total_bytes: Option<u64>,
    pub free_bytes: Option<u64>,
    /// Bytes of page cache, shared memory included.
    pub page_cache_bytes: Option<u64>,
    /// Bytes of shared memory (tmpfs, System V), which cannot be freed.
    pub shared_bytes: Option<u64>,
    /// Bytes of anonymous memory.
    pub anonymous_bytes: Option<u64>,
    /// Anonymous bytes in transparent huge pages.
    pub transparent_huge_bytes: Option<u64>,
    /// Bytes in the kernel's slab caches.
    pub slab_bytes: Option<u64>,
    /// Slab bytes that the kernel can reclaim.
    pub slab_reclaimable_bytes: Option<u64>,
    /// The pools of reserved huge pages.
    pub huge_pages: Vec<HugePagePool>,
    /// The node's zones.
    pub zones: Vec<ZoneView>,
    /// The share of the node's free memory that cannot serve a huge page, from 0 to 1.
    pub fragmentation: Option<f64>,
    /// Allocation counters since boot, in pages.
    pub since_boot: Option<Counters>,
    /// Allocation counters in pages per second.
    pub rates: Option<Counters>,
    /// Pages promoted and demoted since boot.
    pub moves_since_boot: Option<TierMoves>,
    /// Pages promoted and demoted per second.
    pub moves_rates: Option<TierMoves>,
}

impl NodeView {
    /// Returns the bytes that are free or can be freed at once: page cache other than shared memory,
    /// and reclaimable slab; `None` if free memory or page cache is unknown.
    pub fn available_bytes(&self) -> Option<u64> {
        let cache = self.page_cache_bytes?.saturating_sub(self.shared_bytes.unwrap_or(0));
        let slab = self.slab_reclaimable_bytes.unwrap_or(0);
        Some(self.free_bytes?.saturating_add(cache).saturating_add(slab))
    }

    /// Returns the share of its memory that is available, from 0 to 1; `None` for a node without
    /// memory too.
    pub fn available_share(&self) -> Option<f64> {
        let total = self.total_bytes?;
        spread::ratio(self.available_bytes()?.min(total), total)
    }

    /// Returns false for a node that is known to have no memory.
    pub fn may_have_memory(&self) -> bool {
        self.total_bytes != Some(0)
    }
}

/// The kernel's allocation counters: pages since boot, or pages per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Counters {
    /// Pages allocated here as intended.
    pub hit: f64,
    /// Pages allocated here although they were intended for another node.
    pub miss: f64,
    /// Pages intended for this node but allocated elsewhere.
    pub foreign: f64,
    /// Pages interleaved here as intended.
    pub interleave_hit: f64,
    /// Pages allocated here by a process running on this node.
    pub local: f64,
    /// Pages allocated here by a process running on another node.
    pub other: f64,
}

impl Counters {
    /// Returns the share of the allocations intended for this node that went elsewhere, from 0 to
    /// 1.
    pub fn foreign_share(&self) -> Option<f64> {
        let meant = self.hit + self.foreign;
        (meant > 0.0).then(|| self.foreign / meant)
    }
}

/// Pages that reached a node by promotion and left it by demotion: since boot, or per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TierMoves {
    /// Pages promoted to this node.
    pub promoted: f64,
    /// Pages hot enough to be promoted to this node.
    pub candidates: f64,
    /// Pages demoted from this node.
    pub demoted: f64,
}

/// Pages that the kernel moved on the whole machine: since boot, or per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Migrations {
    /// Pages moved by NUMA balancing, promotions included.
    pub balanced: f64,
    /// Pages moved for any reason, including compaction and demotion.
    pub moved: f64,
    /// Pages that could not be moved.
    pub failed: f64,
}

/// A zone of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ZoneView {
    /// The zone's name: `DMA`, `DMA32`, `Normal`, `Movable`.
    pub name: String,
    /// Free blocks by order: of 1, 2, 4, … pages.
    pub free_blocks: Vec<u64>,
    /// Number of pages that the kernel manages in the zone.
    pub managed_pages: Option<u64>,
    /// The number of free pages below which allocations go elsewhere and reclaim begins (`low`).
    pub low_pages: Option<u64>,
    /// Pageblocks by the type of page they hold, such as `Movable`; readable by root only.
    pub pageblocks: BTreeMap<String, u64>,
}

impl ZoneView {
    /// Returns the number of free pages.
    pub fn free_pages(&self) -> u64 {
        self.pages_from(0)
    }

    /// Returns the number of free pages in blocks of at least this order.
    pub fn pages_from(&self, order: u32) -> u64 {
        let pages = |(order, blocks): (u32, &u64)| {
            blocks.saturating_mul(1_u64.checked_shl(order).unwrap_or(0))
        };
        let all = (0_u32..).zip(&self.free_blocks);
        all.filter(|(at, _)| *at >= order).map(pages).fold(0, u64::saturating_add)
    }
}

/// Returns the share of free pages that cannot serve a block of `order`, from 0 to 1 (Gorman's
/// unusable free space index); `None` if no page is free.
pub fn fragmentation(zones: &[ZoneView], order: u32) -> Option<f64> {
    let sum = |from| zones.iter().map(|zone| zone.pages_from(from)).fold(0, u64::saturating_add);
    spread::ratio(sum(order), sum(0)).map(|usable| 1.0 - usable)
}
