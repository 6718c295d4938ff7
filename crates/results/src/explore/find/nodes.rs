//! Rules for problems of the nodes' memory.

use std::collections::BTreeSet;

use numalab_record::explore::{FULL, NodeRoom, NodeView, NodesView, RoomByNode, spread};
use numalab_topology::NodeId;
use serde::Serialize;

use super::room::has_room;
use super::{ExploreFinding, JudgedProblem, Obstacle, Problem, ProblemPlace, Remedy};
use crate::Finding;

/// Minimum share of free or reclaimable memory on another node for a full one to be reported.
pub(super) const PLENTY: f64 = 0.2;
/// Minimum share of allocations that currently go to other nodes to be reported, and minimum number
/// of pages per second.
const MANY_FOREIGN: f64 = 0.01;
const LEAST_FOREIGN: f64 = 100.0;
/// Minimum share of a node's memory in page cache for which reclaiming it is suggested.
const LEAST_CACHE: f64 = 0.01;
/// A node is fragmented if more than this share of its free memory is unusable for huge pages, and if
/// it has this much free memory.
const SCATTERED: f64 = 0.9;
const LEAST_FREE_BYTES: u64 = 256 << 20;

/// A problem of the nodes' memory. Shares are 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum NodesProblem {
    /// A node is full while another has room, so new memory spills over.
    NodeFull {
        /// The full node.
        node: NodeId,
        /// The node's total memory, in bytes.
        total_bytes: u64,
        /// The share that is free or reclaimable.
        available_share: f64,
        /// The node with most room.
        roomy: NodeId,
        /// The free or reclaimable share of that node.
        roomy_share: f64,
    },
    /// Allocations intended for a node currently go elsewhere.
    AllocationsElsewhere {
        /// The node concerned.
        node: NodeId,
        /// Pages per second that go elsewhere.
        pages_per_s: f64,
        /// The share of these among all allocations intended for the node.
        share: f64,
        /// Unused reserved huge pages on the node.
        unused_pool: Option<UnusedPool>,
    },
    /// Free memory is in pieces too small for a huge page.
    FreeMemoryScattered {
        /// The node concerned.
        node: NodeId,
        /// The node's free memory, in bytes.
        free_bytes: u64,
        /// The share of it in such pieces.
        share: f64,
        /// The size of a huge page, in bytes.
        huge_page_bytes: u64,
        /// The share of the node's pageblocks that compaction can move, if known.
        movable_share: Option<f64>,
    },
    /// A node has none of the reserved huge pages that other nodes have.
    NoReservedPages {
        /// The node concerned.
        node: NodeId,
        /// The page size, in bytes.
        page_bytes: u64,
        /// Number of such pages on other nodes.
        elsewhere: u64,
    },
}

/// Reserved huge pages of one size on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct UnusedPool {
    /// The page size, in bytes.
    pub page_bytes: u64,
    /// Memory in unused pages, in bytes.
    pub unused_bytes: u64,
}

pub(super) fn findings(view: &NodesView) -> Vec<ExploreFinding> {
    let mut findings = Vec::new();
    for node in view.nodes.iter().filter(|node| node.may_have_memory()) {
        findings.extend(full(view, node));
        findings.extend(allocations_elsewhere(node));
        findings.extend(scattered(view, node));
    }
    findings.extend(without_reserved_pages(view));
    findings
}

fn of_node(node: &NodeView, advice: JudgedProblem) -> ExploreFinding {
    Finding::new(advice).shown_by(vec![ProblemPlace::Node(node.node)])
}

fn room(node: &NodeView) -> RoomByNode {
    let known = node.total_bytes.zip(node.available_bytes());
    let room =
        known.map(|(total_bytes, available_bytes)| NodeRoom { total_bytes, available_bytes });
    room.map(|room| (node.node, room)).into_iter().collect()
}

/// Returns the largest share of a node's memory that may be available: without figures of its page
/// cache, all but shared memory.
fn most_available(node: &NodeView) -> Option<f64> {
    let total = node.total_bytes?;
    let unshared = || spread::ratio(total.saturating_sub(node.shared_bytes?), total);
    node.available_share().or_else(unshared)
}

/// Returns the smallest share that may be available.
fn least_available(node: &NodeView) -> Option<f64> {
    let free = || spread::ratio(node.free_bytes?.min(node.total_bytes?), node.total_bytes?);
    node.available_share().or_else(free)
}

/// Returns the node with most room, preferring nodes with cpus if any of them has plenty: memory
/// without cpus is a device's or a slower tier.
fn roomiest(view: &NodesView) -> Option<(&NodeView, f64)> {
    let most = |has_cpus: bool| {
        let nodes = view.nodes.iter().filter(move |node| node.cpus.is_empty() != has_cpus);
        let shares = nodes.filter_map(|node| Some((node, least_available(node)?)));
        let roomy = shares.filter(|(_, share)| *share >= PLENTY);
        roomy.max_by(|(_, a), (_, b)| a.total_cmp(b))
    };
    most(true).or_else(|| most(false))
}

fn full(view: &NodesView, node: &NodeView) -> Option<ExploreFinding> {
    let (total_bytes, available_share) = (node.total_bytes?, most_available(node)?);
    let (roomy, roomy_share) = roomiest(view).filter(|_| available_share < FULL)?;
    let problem = NodesProblem::NodeFull {
        node: node.node,
        total_bytes,
        available_share,
        roomy: roomy.node,
        roomy_share,
    };
    let remedy = match roomy.cpus.is_empty() {
        true => Err(Obstacle::WithoutCpus { node: roomy.node }),
        false => Ok(Remedy::UseOtherNode {
            full: node.node,
            roomy: roomy.node,
            is_shared: node.shared_bytes.is_some_and(|bytes| bytes > total_bytes / 2),
        }),
    };
    Some(of_node(node, JudgedProblem::wrong_if(Problem::Nodes(problem), remedy)).over(FULL))
}

fn allocations_elsewhere(node: &NodeView) -> Option<ExploreFinding> {
    let rates = node.rates?;
    let share = rates.foreign_share()?;
    if share < MANY_FOREIGN || rates.foreign < LEAST_FOREIGN {
        return None;
    }
    let pool = node.huge_pages.iter().find(|pool| pool.free > 0);
    let problem = NodesProblem::AllocationsElsewhere {
        node: node.node,
        pages_per_s: rates.foreign,
        share,
        unused_pool: pool.map(|pool| UnusedPool {
            page_bytes: pool.page_bytes,
            unused_bytes: pool.free.saturating_mul(pool.page_bytes),
        }),
    };
    let remedy = pool.map_or_else(
        || reclaim(node),
        |pool| {
            Ok(Remedy::ReservePages {
                node: node.node,
                page_bytes: pool.page_bytes,
                pages: pool.total - pool.free.min(pool.total),
            })
        },
    );
    Some(of_node(node, JudgedProblem::wrong_if(Problem::Nodes(problem), remedy)).over(MANY_FOREIGN))
}

/// Reclaims page cache, except on a node that is known to have little.
fn reclaim(node: &NodeView) -> Result<Remedy, Obstacle> {
    let is_little = |cache_bytes: &u64| {
        let share = spread::ratio(*cache_bytes, node.total_bytes.unwrap_or(0));
        share.is_none_or(|share| share < LEAST_CACHE)
    };
    let known = node.available_bytes().zip(node.free_bytes);
    let cache_bytes = known.map(|(available, free)| available.saturating_sub(free));
    match cache_bytes.filter(is_little) {
        Some(cache_bytes) => Err(Obstacle::LittleCache { node: node.node, cache_bytes }),
        None => Ok(Remedy::ReclaimOnNode),
    }
}

fn scattered(view: &NodesView, node: &NodeView) -> Option<ExploreFinding> {
    let (share, free_bytes) = (node.fragmentation?, node.free_bytes?);
    let huge_page_bytes = view.base_page_bytes? << view.huge_order?;
    if share <= SCATTERED || free_bytes < LEAST_FREE_BYTES {
        return None;
    }
    let problem = NodesProblem::FreeMemoryScattered {
        node: node.node,
        free_bytes,
        share,
        huge_page_bytes,
        movable_share: movable(node),
    };
    let advice = JudgedProblem::note(Problem::Nodes(problem), Remedy::Compact { node: node.node });
    Some(of_node(node, advice).over(SCATTERED))
}

/// Returns the share of memory that compaction can move, which only root can read.
fn movable(node: &NodeView) -> Option<f64> {
    let all: u64 = node.zones.iter().flat_map(|zone| zone.pageblocks.values()).sum();
    let movable: u64 = node.zones.iter().filter_map(|zone| zone.pageblocks.get("Movable")).sum();
    spread::ratio(movable, all)
}

/// Reports sizes of huge pages that only some nodes have reserved.
fn without_reserved_pages(view: &NodesView) -> Vec<ExploreFinding> {
    let with_memory: Vec<&NodeView> =
        view.nodes.iter().filter(|node| node.may_have_memory() && !node.cpus.is_empty()).collect();
    let pools = || with_memory.iter().flat_map(|node| &node.huge_pages);
    let sizes: BTreeSet<u64> = pools().map(|pool| pool.page_bytes).collect();
    let of_size = |page_bytes: u64| {
        let total = |node: &NodeView| -> u64 {
            let pools = node.huge_pages.iter().filter(|pool| pool.page_bytes == page_bytes);
            pools.map(|pool| pool.total).sum()
        };
        let elsewhere: u64 = with_memory.iter().map(|node| total(node)).sum();
        let without = with_memory.iter().find(|node| total(node) == 0)?;
        (elsewhere > 0).then(|| {
            let pages = elsewhere.div_ceil(with_memory.len() as u64);
            let node = without.node;
            let problem = NodesProblem::NoReservedPages { node, page_bytes, elsewhere };
            let room = room(without);
            let room = has_room(&room, node, pages.saturating_mul(page_bytes));
            let remedy = room.map(|()| Remedy::ReservePages { node, page_bytes, pages });
            of_node(without, JudgedProblem::note_if(Problem::Nodes(problem), remedy))
        })
    };
    sizes.into_iter().filter_map(of_size).collect()
}
