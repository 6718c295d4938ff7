//! Validation of ranges of physical memory.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::finding::{Findings, Severity};
use crate::machine::Machine;
use crate::memory::{MemoryKind, MemoryRange};

pub(super) fn check(machine: &Machine, findings: &mut Findings) {
    for range in &machine.ranges {
        if range.length_bytes == 0 {
            findings.warning("range-empty", place(range), "has length 0");
        }
        if range.end().is_none() {
            findings.error("range-end", place(range), "ends beyond 64 bits");
        }
        if machine.node(range.node).is_none() {
            let message = format!("belongs to node {}, which does not exist", range.node);
            findings.error("range-node-unknown", place(range), message);
        }
    }
    check_overlap(machine, findings);
    machine.note_free_memory(findings);
}

impl Machine {
    /// Adds a warning for each node with more free memory than memory, or with huge pages for which it
    /// has no room, also for readers that check nothing else.
    pub fn note_free_memory(&self, findings: &mut Findings) {
        for node in self.nodes.iter().filter(|node| !node.memory_unknown) {
            if let Some(free) = node.free_bytes.filter(|free| *free > node.memory_bytes) {
                let (free, all) = (free >> 20, node.memory_bytes >> 20);
                let message = format!("{free} MiB are free, but it has {all} MiB in all");
                findings.warning("free-exceeds-memory", format!("node {}", node.id), message);
            }
            for pool in &node.huge_pages {
                let has_room = pool.total.saturating_mul(pool.page_bytes) <= node.memory_bytes;
                if pool.free > pool.total || !has_room {
                    let message = format!(
                        "{} of {} huge pages of {} KiB are free, but it has {} MiB in all",
                        pool.free,
                        pool.total,
                        pool.page_bytes >> 10,
                        node.memory_bytes >> 20
                    );
                    findings.warning("pool-exceeds-memory", format!("node {}", node.id), message);
                }
            }
        }
    }
}

/// Reports every range that shares addresses with the farthest-reaching one of those before it.
fn check_overlap(machine: &Machine, findings: &mut Findings) {
    let mut sorted: Vec<&MemoryRange> = machine.ranges.iter().collect();
    sorted.retain(|range| range.length_bytes > 0);
    sorted.sort_by_key(|range| range.base);
    let end = |range: &MemoryRange| range.end().unwrap_or(u64::MAX);
    let Some((mut farthest, rest)) = sorted.split_first() else {
        return;
    };
    for range in rest {
        if range.base < end(farthest) {
            let message = format!(
                "of node {} overlaps {} of node {}",
                range.node,
                place(farthest),
                farthest.node
            );
            let ram = is_ram(range) || is_ram(farthest);
            let severity = if ram { Severity::Error } else { Severity::Warning };
            findings.add(severity, "range-overlap", place(range), message);
        }
        if end(range) > end(farthest) {
            farthest = range;
        }
    }
}

/// Returns true if the memory is present when the system starts; a hot-plug range may contain
/// others.
fn is_ram(range: &MemoryRange) -> bool {
    !range.hot_pluggable && range.kind != MemoryKind::NonVolatile
}

fn place(range: &MemoryRange) -> String {
    let last = range.base.saturating_add(range.length_bytes.saturating_sub(1));
    format!("range {:#x}-{:#x}", range.base, last)
}
