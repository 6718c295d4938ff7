//! Heaps that were written down elsewhere: by `numalab-frames`, or by Xen.

mod frames;
mod serial;

use std::fs;
use std::path::Path;

use numalab_topology::NodeId;
use numalab_xen::text::{PAGE_BYTES, XenDump, XenNode};
use serde::Serialize;

use crate::error::ExploreError;
use crate::finding::Finding;
use crate::spread::{self, percent};

/// A free share below this on one node, with `PLENTY` on another, is worth a sentence.
const SHORT: f64 = 0.04;
const PLENTY: f64 = 0.2;
/// So much of the free memory in pieces smaller than 2 MiB is worth one too.
const FRAGMENTED: f64 = 0.5;
/// A domain is on a node if so much of it is there.
const ON_ONE: f64 = 0.95;

/// A heap.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeapView {
    /// Who wrote it.
    pub source: HeapSource,
    /// The nodes.
    pub nodes: Vec<HeapNode>,
    /// What Xen said, if it was Xen.
    pub xen: Option<XenDump>,
    /// A picture of a dump of `numalab-frames`: a character for each 2 MiB.
    pub picture: Option<String>,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

/// Who wrote a heap down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum HeapSource {
    /// `numalab-frames`.
    Frames,
    /// Xen's debug keys.
    Xen,
}

/// A node of a heap, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeapNode {
    /// The node.
    pub node: NodeId,
    /// What the allocator manages there.
    pub managed_bytes: u64,
    /// Free.
    pub free_bytes: u64,
    /// Of these, in wholly free blocks of 2 MiB, where known.
    pub free_huge_bytes: Option<u64>,
    /// Of these, in the caches of cpus.
    pub cached_bytes: u64,
    /// Taken out of use.
    pub offline_bytes: u64,
    /// Free bytes by zone.
    pub zones: Vec<HeapZone>,
}

/// A zone of a node, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeapZone {
    /// Its name.
    pub name: String,
    /// Free.
    pub free_bytes: u64,
}

/// Reads a dump of `numalab-frames`, the serial port of numalab's kernel with one in it, or
/// a console of Xen.
///
/// # Errors
/// [`ExploreError::Unreadable`], [`ExploreError::Dump`] for a broken dump and
/// [`ExploreError::NoHeap`] for a file without any.
pub fn read_heap(path: &Path) -> Result<HeapView, ExploreError> {
    let path_buf = || path.to_owned();
    let bytes =
        fs::read(path).map_err(|source| ExploreError::Unreadable { path: path_buf(), source })?;
    if bytes.starts_with(b"NLHEAP") {
        return frames::view(&bytes)
            .map_err(|source| ExploreError::Dump { path: path_buf(), source });
    }
    let text = String::from_utf8_lossy(&bytes);
    if let Some(dump) = serial::dump(&text) {
        return frames::view(&dump)
            .map_err(|source| ExploreError::Dump { path: path_buf(), source });
    }
    let dump = XenDump::read(&text);
    match dump.is_empty() {
        true => Err(ExploreError::NoHeap { path: path_buf() }),
        false => Ok(xen_view(dump)),
    }
}

/// A heap as Xen told it.
#[must_use]
pub fn xen_view(dump: XenDump) -> HeapView {
    let mut nodes: Vec<HeapNode> = dump.nodes.iter().map(node_of_xen).collect();
    for zone in &dump.zones {
        let free_bytes = zone.free_pages.saturating_mul(PAGE_BYTES);
        let at = nodes.iter().position(|node| node.node == zone.node).unwrap_or_else(|| {
            nodes.push(HeapNode { node: zone.node, ..HeapNode::default() });
            nodes.len() - 1
        });
        nodes[at].zones.push(HeapZone { name: zone_name(zone.zone), free_bytes });
    }
    for node in nodes.iter_mut().filter(|node| node.free_bytes == 0) {
        node.free_bytes = node.zones.iter().map(|zone| zone.free_bytes).sum();
    }
    let mut findings = node_findings(&nodes);
    findings.extend(split_domains(&dump));
    HeapView { source: HeapSource::Xen, nodes, xen: Some(dump), picture: None, findings }
}

fn node_of_xen(node: &XenNode) -> HeapNode {
    HeapNode {
        node: node.node,
        managed_bytes: node.spanned_pages.saturating_mul(PAGE_BYTES),
        free_bytes: node.free_pages.saturating_mul(PAGE_BYTES),
        ..HeapNode::default()
    }
}

/// Zone z has the pages whose number takes z bits: below `2^(z + 12)` bytes.
fn zone_name(zone: u32) -> String {
    match 1_u64.checked_shl(zone.saturating_add(12)) {
        Some(end) if zone < 52 => {
            format!("below {}", numalab_formats::size::format_rounded(end))
        }
        _ => format!("zone {zone}"),
    }
}

/// What is wrong with the nodes of any heap.
fn node_findings(nodes: &[HeapNode]) -> Vec<Finding> {
    let free = |node: &HeapNode| spread::ratio(node.free_bytes, node.managed_bytes);
    let known: Vec<(&HeapNode, f64)> =
        nodes.iter().filter_map(|node| Some((node, free(node)?))).collect();
    let roomy = known.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let mut findings = Vec::new();
    for (node, share) in &known {
        if let Some((roomy, most)) = roomy
            && *share < SHORT
            && *most >= PLENTY
        {
            findings.push(Finding::remark(format!(
                "node {} has {} free while node {} has {}: allocations for it fall back to other nodes",
                node.node,
                percent(*share),
                roomy.node,
                percent(*most)
            )));
        }
        let huge = node.free_huge_bytes.and_then(|huge| spread::ratio(huge, node.free_bytes));
        if let Some(huge) = huge.filter(|huge| 1.0 - huge >= FRAGMENTED) {
            findings.push(Finding::remark(format!(
                "{} of the free memory of node {} lie in pieces smaller than 2 MiB: requests for huge pages fall back or fail",
                percent(1.0 - huge),
                node.node
            )));
        }
    }
    findings
}

/// Domains, other than the first, whose memory is on several nodes.
fn split_domains(dump: &XenDump) -> Vec<Finding> {
    let guests = dump.domains.iter().filter(|domain| domain.domain != 0);
    let split = guests.filter_map(|domain| {
        let (node, share) = spread::most(&domain.pages_by_node)?;
        (share < ON_ONE).then(|| {
            Finding::note(
                format!(
                    "domain {} is spread over nodes: {} of its memory are on node {node}",
                    domain.domain,
                    percent(share)
                ),
                format!("in its configuration: cpus = [\"node:{node}\"], then xl destroy {0} and xl create (Xen does not move memory)", domain.domain),
            )
        })
    });
    split.collect()
}
