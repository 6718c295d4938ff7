//! Address translation, from the TLB levels found.

use numalab_memory_model::machine::{Family, Tlb, TlbPart};

use super::Remark;
use super::core::family;
use crate::run::{Oddity, RunFinding, Summary, Tlb as Probed};

/// Cached entries of upper-level page tables per core. Nothing measures them; this is few for a
/// current core.
const UPPER_ENTRIES: u32 = 32;
/// Sizes of a host's pages in bytes.
const SMALL_BYTES: u64 = 4 << 10;
const LARGE_BYTES: u64 = 2 << 20;
/// Concurrent page walks of a core of unknown family, taken from Zen 3 (Software Optimization Guide
/// for AMD Family 19h Processors, publication 56665); nothing measures them either.
const WALKERS: u32 = 6;

/// Returns one array per level and page size with a known end; each entry can hold any page.
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
    let host_page_bytes = host_page_bytes(summary);
    let walkers = family(summary).map_or(WALKERS, Family::walkers);
    let walkers = if host_page_bytes.is_some() { walkers.div_ceil(2) } else { walkers };
    remarks.push(Remark::TlbAssumed { upper_entries: UPPER_ENTRIES, walkers });
    remarks.extend(host_page_bytes.map(|bytes| Remark::HostPages { bytes }));
    let walk_ns = summary.tlbs.iter().find_map(|tlb| walk_ns(tlb, host_page_bytes)).unwrap_or(0.0);
    remarks.extend((walk_ns > 0.0).then_some(Remark::LongWalks { walk_ns }));
    Some(Tlb {
        parts,
        upper_entries: UPPER_ENTRIES,
        walkers,
        walk_ns,
        host_page_bytes,
        tables_node: None,
    })
}

/// Returns the size of a host's pages behind this guest's memory, from the gain of its own huge pages:
/// a TLB holds no page larger than the host's. `None` on hardware, or if no huge page was measured.
fn host_page_bytes(summary: &Summary<'_>) -> Option<u64> {
    summary.run.environment.facts.get("hypervisor")?;
    summary.tlbs.iter().find(|tlb| !tlb.is_of_pages())?;
    let is_split = |found: &RunFinding| matches!(found.what, Oddity::HugePagesSplit { .. });
    Some(if summary.findings.iter().any(is_split) { SMALL_BYTES } else { LARGE_BYTES })
}

/// Returns the time of a small-page walk beyond the loads of its last entry and, with small pages
/// on a host, of the host's. Each is assumed to hit the cache that holds the probe's lines.
fn walk_ns(probed: &Probed, host_page_bytes: Option<u64>) -> Option<f64> {
    let is_small = probed.pages.is_small() && probed.is_of_pages();
    let (last, level) = (probed.points.last()?, probed.levels.last()?);
    let walk_ns = probed.beyond_ns.filter(|_| is_small)? - level.cost_ns;
    let entries = if host_page_bytes == Some(SMALL_BYTES) { 2.0 } else { 1.0 };
    Some((walk_ns - entries * last.cached_ns).max(0.0))
}
