//! Address translation, from the TLB levels found.

use numalab_memory_model::machine::{Family, Tlb, TlbPart};
use numalab_topology::Machine;

use super::Remark;
use super::core::family;
use crate::run::{Summary, Tlb as Probed};

/// Cached entries of upper-level page tables per core. Nothing measures them; this is few for a
/// current core.
const UPPER_ENTRIES: u32 = 32;
/// Walks at a time of a core whose family is not known, as Zen 3 has them (Software Optimization Guide for AMD
/// Family 19h Processors, publication 56665); nothing measures them either.
const WALKERS: u32 = 6;
/// Accesses of a nested walk, with four levels of tables in guest and host (AMD64 Architecture
/// Programmer's Manual, volume 2, 15.25 "Nested Paging").
const MOST_ACCESSES: f64 = 24.0;

/// Returns one array per level and page size with a known end; each entry can hold any page.
pub(super) fn tlb(
    summary: &Summary<'_>,
    machine: &Machine,
    remarks: &mut Vec<Remark>,
) -> Option<Tlb> {
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
    let walkers = family(summary, machine).map_or(WALKERS, Family::walkers);
    remarks.push(Remark::TlbAssumed { upper_entries: UPPER_ENTRIES, walkers });
    let nested_accesses = summary.tlbs.iter().find_map(nested_accesses);
    remarks.extend(nested_accesses.map(|accesses| Remark::LongWalks { accesses }));
    Some(Tlb {
        parts,
        upper_entries: UPPER_ENTRIES,
        walkers,
        nested_accesses,
        host_page_bytes: None,
        tables_node: None,
    })
}

/// Returns the accesses of a small-page walk beyond the one to its own entry, if it takes longer
/// than that. Each is assumed to take as long as an access to the same number of lines.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn nested_accesses(probed: &Probed) -> Option<u32> {
    let (last, level) = (probed.points.last()?, probed.levels.last()?);
    let is_small = probed.pages.is_small() && probed.is_of_pages();
    let walk_ns = probed.beyond_ns.filter(|_| is_small)? - level.cost_ns;
    let accesses = (walk_ns / last.cached_ns).round().clamp(1.0, MOST_ACCESSES) as u32;
    (accesses > 1).then(|| accesses - 1)
}
