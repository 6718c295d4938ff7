//! Address translation, from the TLB levels found.

use numalab_memory_model::machine::{CacheLevel, Family, Tlb, TlbPart};
use numalab_memory_model::probe::{self, Visits};
use numalab_record::CoreCell;

use super::Remark;
use super::core::family;
use crate::run::{Oddity, RunFinding, Summary, Tlb as Probed};

/// Cached entries of upper-level page tables per core. Nothing measures them; this is few for a
/// current core.
const UPPER_ENTRIES: u32 = 32;
/// Sizes of a host's pages in bytes.
const SMALL_BYTES: u64 = 4 << 10;
const LARGE_BYTES: u64 = 2 << 20;
/// Maximum number of concurrent page walks of a core of unknown family, taken from Zen 3 (Software
/// Optimization Guide for AMD Family 19h Processors, publication 56665).
const WALKERS: u32 = 6;

/// Returns one array per level and page size of known reach; each entry can hold any page. `caches`
/// hold page tables as far as they fit.
pub(super) fn tlb(
    summary: &Summary<'_>,
    caches: &[CacheLevel],
    remarks: &mut Vec<Remark>,
) -> Option<Tlb> {
    let mut parts = Vec::new();
    for probed in summary.tlbs.iter().filter(|tlb| tlb.is_of_pages()) {
        for level in probed.levels.iter().filter(|level| level.passed_pages.is_some()) {
            // The probe doubles the number of pages.
            let published = family(summary).and_then(|family| family.tlb_entries(level.level));
            let fits = |entries: &u32| {
                let pages = u64::from(*entries);
                pages >= level.holds_pages && level.passed_pages.is_some_and(|of| pages < of)
            };
            let holds = u32::try_from(level.holds_pages).unwrap_or(u32::MAX);
            let entries = published.filter(fits).unwrap_or(holds);
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
    let host_page_bytes = host_page_bytes(summary);
    // A TLB holds no page larger than the host's, so the probe of larger pages measures walks.
    parts.retain(|part| host_page_bytes.is_none_or(|most| part.page_bytes[0] <= most));
    parts.sort_by_key(|part| (part.level, part.page_bytes[0]));
    if parts.is_empty() {
        remarks.push(Remark::NoTlb);
        return None;
    }
    let most = family(summary).map_or(WALKERS, Family::walkers);
    remarks.extend(host_page_bytes.map(|bytes| Remark::HostPages { bytes }));
    let mut tlb = Tlb {
        parts,
        upper_entries: UPPER_ENTRIES,
        walkers: most,
        walk_ns: 0.0,
        host_page_bytes,
        tables_node: None,
    };
    tlb.walk_ns = summary.tlbs.iter().find_map(|of| walk_ns(of, caches, &tlb)).unwrap_or(0.0);
    let found = walkers(summary, caches, &tlb);
    tlb.walkers = found.map_or(most, |(walkers, _)| walkers);
    let assumed = found.is_none().then_some(most);
    remarks.push(Remark::TlbAssumed { upper_entries: UPPER_ENTRIES, walkers: assumed });
    remarks.extend(found.map(|(walkers, read_ns)| Remark::WalkersFound { walkers, read_ns }));
    let Tlb { walk_ns, .. } = tlb;
    remarks.extend((walk_ns > 0.0).then_some(Remark::LongWalks { walk_ns }));
    Some(tlb)
}

/// Returns the number of page walks that a core runs at a time, at most its family's, and the time
/// in ns of an independent read of a small page: the number of such reads that fit into one walk.
/// `None` if it was not measured, or if a TLB may hold that many pages.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn walkers(summary: &Summary<'_>, caches: &[CacheLevel], tlb: &Tlb) -> Option<(u32, f64)> {
    let pages = CoreCell::pages_read(&summary.run.machine);
    let small = tlb.parts.iter().filter(|part| part.page_bytes == [SMALL_BYTES]);
    small.map(|part| part.entries).max().filter(|held| 2 * u64::from(*held) <= pages)?;
    let mut reads = summary.cores.iter().filter_map(|core| core.page_read_ns.as_ref());
    let read_ns = reads.next()?.median;
    let walk_ns = probe::translation_ns(caches, tlb, pages, Visits::InOrder);
    let walkers = (walk_ns / read_ns).round().clamp(1.0, f64::from(tlb.walkers));
    Some((walkers as u32, read_ns))
}

/// Returns the size of the host's pages behind this guest's memory, from the gain of the guest's
/// huge pages: a TLB holds no page larger than the host's. `None` on hardware, or if no huge page
/// was measured.
fn host_page_bytes(summary: &Summary<'_>) -> Option<u64> {
    summary.run.environment.facts.get("hypervisor")?;
    summary.tlbs.iter().find(|tlb| !tlb.is_of_pages())?;
    let is_split = |found: &RunFinding| matches!(found.what, Oddity::HugePagesSplit { .. });
    Some(if summary.findings.iter().any(is_split) { SMALL_BYTES } else { LARGE_BYTES })
}

/// Returns the time of a small-page walk beyond its accesses to page tables: the difference between
/// the probe of the most pages and the model of this TLB.
fn walk_ns(probed: &Probed, caches: &[CacheLevel], tlb: &Tlb) -> Option<f64> {
    let is_small = probed.pages.is_small() && probed.is_of_pages();
    let last = probed.last().filter(|_| is_small && probed.beyond_ns.is_some())?;
    Some((last.cost_ns() - probe::translation_ns(caches, tlb, last.pages, Visits::Random)).max(0.0))
}
