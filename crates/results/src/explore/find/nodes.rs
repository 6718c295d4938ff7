//! What is wrong with the nodes' memory, by rules.

use std::collections::BTreeSet;

use numalab_record::explore::{NodeView, NodesView, spread};
use numalab_topology::NodeId;
use serde::Serialize;

use super::{Advice, ExploreFinding, Place, Problem, Remedy};
use crate::Finding;

/// A node is full when less than this share of it is free or can be freed at once, while another
/// has `PLENTY`.
pub(super) const FULL: f64 = 0.04;
pub(super) const PLENTY: f64 = 0.2;
/// The share of allocations that go elsewhere, now, from which on it is reported; and the
/// fewest pages a second.
const MANY_FOREIGN: f64 = 0.01;
const LEAST_FOREIGN: f64 = 100.0;
/// Free memory is scattered when more of it than this cannot serve a huge page, and there
/// is enough of it to matter, in bytes.
const SCATTERED: f64 = 0.9;
const LEAST_FREE_BYTES: u64 = 256 << 20;

/// Something that is wrong with the nodes' memory. Shares are 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum NodesProblem {
    /// A node is full while another has room: new memory spills over.
    NodeFull {
        /// The node.
        node: NodeId,
        /// All of its memory.
        total_bytes: u64,
        /// The share that is free or can be freed at once.
        available_share: f64,
        /// The node with most room.
        roomy: NodeId,
        /// The same share of that node.
        roomy_share: f64,
    },
    /// Pages that are meant for a node go elsewhere now.
    AllocationsElsewhere {
        /// The node.
        node: NodeId,
        /// Pages a second that go elsewhere.
        pages_per_s: f64,
        /// Their share of all that are meant for it.
        share: f64,
        /// Reserved huge pages there that nobody uses.
        unused_pool: Option<UnusedPool>,
    },
    /// Free memory lies in pieces that are too small for a huge page.
    FreeMemoryScattered {
        /// The node.
        node: NodeId,
        /// Free.
        free_bytes: u64,
        /// The share of it in such pieces.
        share: f64,
        /// A huge page.
        huge_page_bytes: u64,
        /// The share of the node's pageblocks that can be moved together, where known.
        movable_share: Option<f64>,
    },
    /// A node has none of the reserved huge pages that others have.
    NoReservedPages {
        /// The node.
        node: NodeId,
        /// The size of a page.
        page_bytes: u64,
        /// Such pages on other nodes.
        elsewhere: u64,
    },
}

/// Reserved huge pages of a size on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnusedPool {
    /// The size of a page in bytes.
    pub page_bytes: u64,
    /// Bytes in pages that nobody uses.
    pub unused_bytes: u64,
}

pub(super) fn findings(view: &NodesView) -> Vec<ExploreFinding> {
    let mut findings = Vec::new();
    for node in view.nodes.iter().filter(|node| node.total_bytes > 0) {
        findings.extend(full(view, node));
        findings.extend(allocations_elsewhere(node));
        findings.extend(scattered(view, node));
    }
    findings.extend(without_reserved_pages(view));
    findings
}

fn of_node(node: &NodeView, advice: Advice) -> ExploreFinding {
    Finding::new(advice).shown_by(vec![Place::Node(node.node)])
}

fn available(node: &NodeView) -> f64 {
    spread::ratio(node.available_bytes().min(node.total_bytes), node.total_bytes).unwrap_or(0.0)
}

fn full(view: &NodesView, node: &NodeView) -> Option<ExploreFinding> {
    let roomy = view.nodes.iter().max_by(|a, b| available(a).total_cmp(&available(b)))?;
    if available(node) >= FULL || available(roomy) < PLENTY {
        return None;
    }
    let problem = NodesProblem::NodeFull {
        node: node.node,
        total_bytes: node.total_bytes,
        available_share: available(node),
        roomy: roomy.node,
        roomy_share: available(roomy),
    };
    let remedy = Remedy::UseOtherNode { full: node.node, roomy: roomy.node };
    Some(of_node(node, Advice::wrong(Problem::Nodes(problem), remedy)).over(FULL))
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
    let remedy = pool.map_or(Remedy::ReclaimOnNode, |pool| Remedy::ReservePages {
        node: node.node,
        page_bytes: pool.page_bytes,
        pages: pool.total - pool.free.min(pool.total),
    });
    Some(of_node(node, Advice::wrong(Problem::Nodes(problem), remedy)).over(MANY_FOREIGN))
}

fn scattered(view: &NodesView, node: &NodeView) -> Option<ExploreFinding> {
    let share = node.fragmentation?;
    if share <= SCATTERED || node.free_bytes < LEAST_FREE_BYTES {
        return None;
    }
    let problem = NodesProblem::FreeMemoryScattered {
        node: node.node,
        free_bytes: node.free_bytes,
        share,
        huge_page_bytes: view.base_page_bytes << view.huge_order,
        movable_share: movable(node),
    };
    let advice = Advice::note(Problem::Nodes(problem), Remedy::Compact { node: node.node });
    Some(of_node(node, advice).over(SCATTERED))
}

/// What compaction can hope for, where root let us see it.
fn movable(node: &NodeView) -> Option<f64> {
    let all: u64 = node.zones.iter().flat_map(|zone| zone.pageblocks.values()).sum();
    let movable: u64 = node.zones.iter().filter_map(|zone| zone.pageblocks.get("Movable")).sum();
    spread::ratio(movable, all)
}

/// All the huge pages of a size on some of the nodes with memory.
fn without_reserved_pages(view: &NodesView) -> Vec<ExploreFinding> {
    let with_memory: Vec<&NodeView> =
        view.nodes.iter().filter(|node| node.total_bytes > 0 && !node.cpus.is_empty()).collect();
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
            let remedy = Remedy::ReservePages { node, page_bytes, pages };
            of_node(without, Advice::note(Problem::Nodes(problem), remedy))
        })
    };
    sizes.into_iter().filter_map(of_size).collect()
}
