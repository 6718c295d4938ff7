//! Heaps from dumps that were written elsewhere: by `numalab-frames`, or by Xen.

mod frames;
mod serial;

use std::path::Path;

use numalab_guest::xen::text::{PAGE_BYTES, XenDump, XenNode};
use numalab_host::bounded::{MOST_RESULT_BYTES, read_input};
use numalab_record::explore::{HeapNode, HeapSource, HeapView, HeapZone, XenDomain, XenHeap};

use crate::error::ExploreError;

/// Reads a dump of `numalab-frames`, the serial output of numalab's kernel that contains one, or a
/// console of Xen.
///
/// # Errors
/// [`ExploreError::Unreadable`], [`ExploreError::Dump`] for a broken dump and
/// [`ExploreError::NoHeap`] for a file without one.
pub fn read_heap(path: &Path) -> Result<HeapView, ExploreError> {
    let path_buf = || path.to_owned();
    let bytes = read_input(path, MOST_RESULT_BYTES)
        .map_err(|source| ExploreError::Unreadable { path: path_buf(), source })?;
    if bytes.starts_with(b"NLHEAP") {
        return frames::view(&bytes)
            .map_err(|source| ExploreError::Dump { path: path_buf(), source });
    }
    let text = String::from_utf8_lossy(&bytes);
    if let Some(dump) = serial::dump(&text) {
        return frames::view(&dump)
            .map_err(|source| ExploreError::Dump { path: path_buf(), source });
    }
    let (dump, list, lists) = XenDump::read_with_guests(&text);
    match dump.is_empty() {
        true => Err(ExploreError::NoHeap { path: path_buf() }),
        false => Ok(xen_view(dump, (list, lists))),
    }
}

/// Converts a heap from Xen's dump, which is one of several lists; the pair has its position and
/// their number.
fn xen_view(dump: XenDump, (list, lists): (usize, usize)) -> HeapView {
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
    let domains = dump.domains.into_iter().map(|domain| XenDomain {
        domain: domain.domain,
        total_pages: domain.total_pages,
        pages_by_node: domain.pages_by_node,
    });
    let xen = XenHeap { cpus: dump.cpus, domains: domains.collect(), list, lists };
    HeapView { source: HeapSource::Xen, nodes, xen: Some(xen), picture: None }
}

fn node_of_xen(node: &XenNode) -> HeapNode {
    HeapNode {
        node: node.node,
        managed_bytes: node.spanned_pages.saturating_mul(PAGE_BYTES),
        free_bytes: node.free_pages.saturating_mul(PAGE_BYTES),
        ..HeapNode::default()
    }
}

/// Returns the name of zone z, which has the pages with numbers of z bits: below `2^(z + 12)`
/// bytes.
fn zone_name(zone: u32) -> String {
    match 1_u64.checked_shl(zone.saturating_add(12)) {
        Some(end) if zone < 52 => {
            format!("below {}", numalab_formats::size::format_rounded(end))
        }
        _ => format!("zone {zone}"),
    }
}
