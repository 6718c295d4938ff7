//! Assignment of addresses to memory with a known size only.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use crate::finding::{Finding, Severity};
use crate::id_set::NodeSet;
use crate::machine::Machine;
use crate::memory::{MemoryKind, MemoryRange};
use crate::node::Node;

/// From this total on, QEMU's q35 puts only [`BELOW_DEVICES`] of the memory below the devices'
/// addresses (`hw/i386/pc_q35.c`, `pc_q35_init`).
const SPLIT_FROM: u64 = 0xb000_0000;
const BELOW_DEVICES: u64 = 2 << 30;
const ABOVE_DEVICES: u64 = 4 << 30;
/// Memory after the known ranges begins on a boundary of this size.
const ALIGNMENT: u64 = 1 << 30;
/// Nodes begin on a page boundary.
const PAGE_BYTES: u64 = 4096;

/// Returns the ranges of a machine, with a finding if some were invented. `None` if they exceed 64
/// bits of addresses.
///
/// A node that has memory but no range present from the start gets one. If no node has any, nodes
/// are laid out as in QEMU's q35, in order from address 0 with a hole below 4 GiB; otherwise after
/// all known ranges.
pub(super) fn ranges(machine: &Machine) -> Option<(Vec<MemoryRange>, Option<Finding>)> {
    let mut ranges = machine.ranges.clone();
    let placed: NodeSet = ranges
        .iter()
        .filter(|range| range.length_bytes > 0 && !range.hot_pluggable)
        .map(|range| range.node)
        .collect();
    let unplaced = |node: &&Node| node.memory_bytes > 0 && !placed.contains(node.id);
    let nodes: Vec<&Node> = machine.nodes.iter().filter(unplaced).collect();
    if nodes.is_empty() {
        return Some((ranges, None));
    }
    let (mut next, hole) = start(&ranges, &nodes)?;
    for node in &nodes {
        let mut left = node.memory_bytes;
        if let Some(hole) = hole.filter(|&hole| next < hole) {
            let low = left.min(hole - next);
            ranges.push(range(node, next, low));
            left -= low;
            next = if next + low == hole { ABOVE_DEVICES } else { next + low };
        }
        if left > 0 {
            ranges.push(range(node, next, left));
            next = next.checked_add(left)?;
        }
        next = next.checked_next_multiple_of(PAGE_BYTES)?;
    }
    ranges.sort_by_key(|range| range.base);
    Some((ranges, Some(finding(&nodes, hole.is_some()))))
}

/// Returns the first free address, and the address of the hole below 4 GiB if memory reaches it.
fn start(known: &[MemoryRange], nodes: &[&Node]) -> Option<(u64, Option<u64>)> {
    let bytes = |node: &&Node| node.memory_bytes.checked_next_multiple_of(PAGE_BYTES);
    let total = nodes.iter().try_fold(0_u64, |sum, node| sum.checked_add(bytes(node)?))?;
    if known.is_empty() {
        return Some((0, (total >= SPLIT_FROM).then_some(BELOW_DEVICES)));
    }
    let end = known.iter().map(|range| range.end().unwrap_or(u64::MAX)).max().unwrap_or_default();
    Some((end.max(ABOVE_DEVICES).checked_next_multiple_of(ALIGNMENT)?, None))
}

fn range(node: &Node, base: u64, length_bytes: u64) -> MemoryRange {
    let (node, hot_pluggable, kind) = (node.id, false, MemoryKind::Ordinary);
    MemoryRange { base, length_bytes, node, hot_pluggable, kind }
}

fn finding(nodes: &[&Node], hole: bool) -> Finding {
    let ids: NodeSet = nodes.iter().map(|node| node.id).collect();
    let how = if hole { "with QEMU's hole from 2 GiB to 4 GiB" } else { "in one piece" };
    Finding {
        severity: Severity::Note,
        code: "memory-laid-out".to_string(),
        place: format!("nodes {ids}"),
        message: format!(
            "the source gives sizes but no addresses: memory is laid out in order of the nodes, {how}"
        ),
    }
}
