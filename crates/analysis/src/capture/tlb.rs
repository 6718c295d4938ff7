//! How addresses are translated, by what the TLB was found to hold.

use numalab_memory_model::machine::{Tlb, TlbPart};

use super::Remark;
use crate::run::Summary;

/// Entries of upper page tables that a core keeps and walks at a time: nothing measures them, and
/// these are few for a core of today.
const UPPER_ENTRIES: u32 = 32;
const WALKERS: u32 = 2;

/// An array for each level and size of pages whose end was found, any entry for any page.
pub(super) fn tlb(summary: &Summary<'_>, remarks: &mut Vec<Remark>) -> Option<Tlb> {
    let mut parts = Vec::new();
    for probed in summary.tlbs.iter().filter(|tlb| tlb.is_of_pages()) {
        for level in probed.levels.iter().filter(|level| level.passed_pages.is_some()) {
            let entries = u32::try_from(level.holds_pages).unwrap_or(u32::MAX);
            let same = |part: &TlbPart| {
                part.level == level.level && part.page_bytes == [probed.apart_bytes]
            };
            if parts.iter().any(same) {
                continue;
            }
            parts.push(TlbPart {
                level: level.level,
                page_bytes: vec![probed.apart_bytes],
                entries,
                ways: entries,
                latency_ns: if level.level > 1 { level.cost_ns } else { 0.0 },
            });
        }
    }
    parts.sort_by_key(|part| (part.level, part.page_bytes[0]));
    if parts.is_empty() {
        remarks.push(Remark::NoTlb);
        return None;
    }
    remarks.push(Remark::TlbAssumed { upper_entries: UPPER_ENTRIES, walkers: WALKERS });
    Some(Tlb { parts, upper_entries: UPPER_ENTRIES, walkers: WALKERS, tables_node: None })
}
