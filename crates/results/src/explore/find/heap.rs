//! Rules for problems in a heap dump.

use numalab_record::explore::{
    FULL, HeapNode, HeapView, NodeRoom, RoomByNode, XEN_PAGE_BYTES, XenHeap, spread,
};
use numalab_topology::NodeId;
use serde::Serialize;

use super::nodes::PLENTY;
use super::room::has_room;
use super::{ExploreFinding, JudgedProblem, Problem, ProblemPlace, Remedy};
use crate::Finding;

/// Minimum share of free memory in pieces smaller than 2 MiB that is reported.
const SCATTERED: f64 = 0.5;
/// Minimum share of a domain's memory on one node for the domain to count as on it.
const ON_ONE: f64 = 0.95;

/// A problem in a heap dump. Shares are 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum HeapProblem {
    /// A node's heap is almost full while another has room.
    HeapNodeFull {
        /// The full node.
        node: NodeId,
        /// The free share of its heap.
        free_share: f64,
        /// The node with most free memory.
        roomy: NodeId,
        /// The free share of that node's heap.
        roomy_share: f64,
    },
    /// A heap's free memory is in pieces smaller than a huge page.
    HeapScattered {
        /// The node of the heap.
        node: NodeId,
        /// The share of its free memory in such pieces.
        share: f64,
    },
    /// A node has more free memory than memory in all: the dump is damaged.
    HeapFreeExceeds {
        node: NodeId,
        /// Its free memory in bytes.
        free_bytes: u64,
        /// All of its memory in bytes.
        managed_bytes: u64,
    },
    /// The dump lacks the nodes of some of a domain's memory.
    DomainIncomplete {
        /// The domain id.
        domain: u32,
        /// The share of its memory with known nodes.
        share: f64,
    },
    /// A domain's memory is on several nodes.
    DomainSpread {
        /// The domain id.
        domain: u32,
        /// The node with most of the domain's memory.
        node: NodeId,
        /// The share of the domain's memory on that node.
        share: f64,
    },
}

pub(super) fn findings(view: &HeapView) -> Vec<ExploreFinding> {
    let mut findings: Vec<_> = view.nodes.iter().filter_map(contradiction).collect();
    findings.extend(of_nodes(&view.nodes));
    let room = room(&view.nodes);
    findings.extend(view.xen.iter().flat_map(|xen| spread_domains(xen, &room)));
    findings
}

/// Reports a node with more free memory than it has in all; no other rule applies to it.
fn contradiction(of: &HeapNode) -> Option<ExploreFinding> {
    let HeapNode { node, free_bytes, managed_bytes, .. } = *of;
    let problem = HeapProblem::HeapFreeExceeds { node, free_bytes, managed_bytes };
    let finding = Finding::new(JudgedProblem::note(Problem::Heap(problem), None));
    let is_odd = managed_bytes > 0 && free_bytes > managed_bytes;
    is_odd.then(|| finding.shown_by(vec![ProblemPlace::Node(node)]))
}

fn of_nodes(nodes: &[HeapNode]) -> Vec<ExploreFinding> {
    let free = |node: &HeapNode| {
        spread::ratio(node.free_bytes, node.managed_bytes).filter(|share| *share <= 1.0)
    };
    let known: Vec<(&HeapNode, f64)> =
        nodes.iter().filter_map(|node| Some((node, free(node)?))).collect();
    let Some((roomy, most)) = known.iter().max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return Vec::new();
    };
    let found = |node: &HeapNode, problem, threshold| {
        let finding =
            Finding::new(JudgedProblem::note(Problem::Heap(problem), None)).over(threshold);
        finding.shown_by(vec![ProblemPlace::Node(node.node)])
    };
    let mut findings = Vec::new();
    for (node, free_share) in &known {
        if *free_share < FULL && *most >= PLENTY {
            let problem = HeapProblem::HeapNodeFull {
                node: node.node,
                free_share: *free_share,
                roomy: roomy.node,
                roomy_share: *most,
            };
            findings.push(found(node, problem, FULL));
        }
        let huge = node.free_huge_bytes.and_then(|huge| spread::ratio(huge, node.free_bytes));
        if let Some(share) = huge.map(|huge| 1.0 - huge).filter(|share| *share >= SCATTERED) {
            let problem = HeapProblem::HeapScattered { node: node.node, share };
            findings.push(found(node, problem, SCATTERED));
        }
    }
    findings
}

/// Returns domains other than Dom0 with memory on several nodes, and those whose nodes the dump does
/// not have.
fn spread_domains(xen: &XenHeap, room: &RoomByNode) -> Vec<ExploreFinding> {
    let guests = xen.domains.iter().filter(|domain| domain.domain != 0);
    let found = guests.filter_map(|domain| {
        let (node, share) = spread::most(&domain.pages_by_node)?;
        let known = domain.pages_by_node.values().fold(0, |sum: u64, of| sum.saturating_add(*of));
        if let Some(share) = spread::ratio(known, domain.total_pages).filter(|of| *of < ON_ONE) {
            let problem = HeapProblem::DomainIncomplete { domain: domain.domain, share };
            let finding =
                Finding::new(JudgedProblem::note(Problem::Heap(problem), None)).over(ON_ONE);
            return Some(finding.shown_by(vec![ProblemPlace::Domain(domain.domain)]));
        }
        (share < ON_ONE).then(|| {
            let on_node = domain.pages_by_node.get(&node).copied().unwrap_or(0);
            let elsewhere = domain.total_pages.saturating_sub(on_node);
            let room = has_room(room, node, elsewhere.saturating_mul(XEN_PAGE_BYTES));
            let domain = domain.domain;
            let problem = HeapProblem::DomainSpread { domain, node, share };
            let remedy = room.map(|()| Remedy::RecreateDomain { domain, node });
            let advice = JudgedProblem::note_if(Problem::Heap(problem), remedy);
            Finding::new(advice).over(ON_ONE).shown_by(vec![ProblemPlace::Domain(domain)])
        })
    });
    found.collect()
}

fn room(nodes: &[HeapNode]) -> RoomByNode {
    let room =
        |of: &HeapNode| NodeRoom { total_bytes: of.managed_bytes, available_bytes: of.free_bytes };
    // Xen's dump does not give the size of a node's heap.
    let is_known = |of: &&HeapNode| of.managed_bytes > 0 && of.free_bytes <= of.managed_bytes;
    nodes.iter().filter(is_known).map(|of| (of.node, room(of))).collect()
}
