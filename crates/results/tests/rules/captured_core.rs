//! Cores, TLBs and caches in machine files: by family, on a host, and from quiet moments.

use numalab_memory_model::machine::{Core, Tlb};
use numalab_record::{AccessPattern, CellResult, Document, LatencyCell, Metric, Pages};
use numalab_results::capture::{Remark, capture};
use numalab_topology::{Cache, CacheKind, CpuId, CpuSet};

use crate::run_lab::{MIB, bandwidth, chase, core, document, latency, stream, with_fact, worker};

/// Returns a private cache with 16 ways.
fn cache(level: u8, size_bytes: u64) -> Cache {
    Cache {
        level,
        kind: CacheKind::Unified,
        size_bytes: Some(size_bytes),
        line_bytes: Some(64),
        ways: Some(16),
        cpus: CpuSet::from_iter([CpuId(0)]),
    }
}

/// Returns the latency of adjacent lines: 1 ns in 32 KiB, 5 ns up to the size of the L2, then that
/// of memory.
fn dense_ns(bytes: u64, l2_bytes: u64) -> f64 {
    match bytes {
        0..=0x8000 => 1.0,
        _ if bytes <= l2_bytes => 5.0,
        _ => 100.0,
    }
}

fn sweep(l2_bytes: u64) -> Vec<CellResult> {
    let at = |bit: u64| {
        let size_bytes = 1_u64 << bit;
        latency(LatencyCell { size_bytes, ..chase(0, 0) }, dense_ns(size_bytes, l2_bytes))
    };
    (12..=26).map(at).collect()
}

/// Returns lines one small page apart; translation takes 2 ns beyond 64 pages and `walk_ns` beyond
/// 2048.
fn apart(pages: Pages, walk_ns: f64) -> Vec<CellResult> {
    let at = |bit: u64| {
        let count = 1_u64 << bit;
        let cost_ns = match count {
            0..=64 => 0.0,
            65..=2048 => 2.0,
            _ => walk_ns,
        };
        let pattern = AccessPattern::OneLinePer(4096);
        let of = LatencyCell { size_bytes: count * 4096, pattern, pages, ..chase(0, 0) };
        let mut cell = latency(of, dense_ns(count * 64, 2 * MIB) + cost_ns);
        let page_bytes = if pages == Pages::Transparent { 2 * MIB } else { 4096 };
        cell.placements[0].bytes_per_page_size = [(page_bytes, 64 * MIB)].into();
        cell
    };
    (4..=14).map(at).collect()
}

/// Returns a run on Intel cores with this L2 size that read 28.16 GB/s at a latency of 100 ns: 44
/// lines.
fn run(l2_bytes: u64, more: Vec<CellResult>) -> Document {
    let reads = bandwidth(stream(vec![worker(0, 0)]), 28.16);
    let cells = [sweep(l2_bytes), vec![latency(chase(0, 0), 100.0), reads, core(0, 3.0)], more];
    let mut document = with_fact(document(cells.concat()), "cpu_vendor", "GenuineIntel");
    document.run.machine.caches = vec![cache(1, 32 << 10), cache(2, l2_bytes)];
    document
}

fn core_of(document: &Document) -> Core {
    capture(document).figures.memory.core.expect("a core")
}

fn tlb_of(document: &Document) -> Tlb {
    capture(document).figures.memory.tlb.expect("a TLB")
}

#[test]
fn lines_beyond_the_fill_buffers_of_the_family_are_prefetches() {
    let lines = |l2_bytes| {
        let core = core_of(&run(l2_bytes, Vec::new()));
        (core.timing.expect("a table").family.name(), core.misses, core.prefetch)
    };
    assert_eq!(lines(2 * MIB), ("golden-cove", 16, Some(28)));
    assert_eq!(lines(MIB), ("skylake", 12, Some(32)));
    let newer = with_fact(run(2 * MIB, Vec::new()), "cpu_prefetches_code", "yes");
    assert_eq!(core_of(&newer).timing.expect("a table").family.name(), "redwood-cove");
}

#[test]
fn walkers_are_those_of_the_family_and_half_of_them_under_a_host() {
    let small = || apart(Pages::BASE_4K, 15.0);
    let walkers = |document: &Document| tlb_of(document).walkers;
    assert_eq!(walkers(&run(2 * MIB, small())), 4);
    assert_eq!(walkers(&run(MIB, small())), 2);
    let unknown = with_fact(run(2 * MIB, small()), "cpu_vendor", "Other");
    assert_eq!(walkers(&unknown), 6);
    let cells = [small(), apart(Pages::Transparent, 8.0)].concat();
    let guest = with_fact(run(2 * MIB, cells), "hypervisor", "KVM");
    assert_eq!(walkers(&guest), 2);
}

#[test]
fn a_host_has_small_pages_if_a_guests_huge_ones_gain_little_and_a_walk_takes_the_rest() {
    let found = |huge_ns: f64, hypervisor: bool| {
        let small = apart(Pages::BASE_4K, 15.0);
        let mut document = run(2 * MIB, [small, apart(Pages::Transparent, huge_ns)].concat());
        if hypervisor {
            document = with_fact(document, "hypervisor", "KVM");
        }
        let tlb = tlb_of(&document);
        (tlb.host_page_bytes, format!("{:.0} ns", tlb.walk_ns))
    };
    // 13 ns beyond the second level, of which each entry in the L2 takes 5.
    assert_eq!(found(8.0, true), (Some(4096), "3 ns".to_owned()));
    assert_eq!(found(0.0, true), (Some(2 << 20), "8 ns".to_owned()));
    assert_eq!(found(8.0, false), (None, "8 ns".to_owned()));
}

#[test]
fn a_core_is_as_it_was_in_the_best_tenth_of_the_windows() {
    let quiet = run(2 * MIB, Vec::new());
    let mut busy = quiet.clone();
    for cell in &mut busy.cells {
        let again: Vec<_> = cell.samples.iter().cycle().take(40).cloned().collect();
        cell.samples = again;
        for (at, sample) in (0_u32..).zip(&mut cell.samples) {
            let slower = if sample.metric == Metric::Latency { 1.3 } else { 1.0 / 1.3 };
            sample.value *= if at % 8 == 0 { 1.0 } else { slower };
            sample.index = at;
        }
    }
    let [quiet, busy] = [&quiet, &busy].map(|document| {
        let figures = capture(document).figures.memory;
        let core = figures.core.expect("a core");
        (core.timing.expect("a table").cycle_ns, core.misses, figures.cache_latency_ns)
    });
    assert!((quiet.0 / busy.0 - 1.0).abs() < 0.01, "{quiet:?}, {busy:?}");
    assert_eq!(quiet.1, busy.1);
    assert!(quiet.2.iter().zip(&busy.2).all(|(a, b)| (a / b - 1.0).abs() < 0.01), "{busy:?}");
}

#[test]
fn a_cache_is_not_larger_than_reported_where_the_next_one_was_not_found() {
    let mut document = run(4 * MIB, Vec::new());
    let size = |document: &Document| {
        let captured = capture(document);
        let is_size = |remark: &Remark| matches!(remark, Remark::CacheFound { level: 2, .. });
        let found = captured.figures.machine.caches.iter().find(|cache| cache.level == 2);
        (found.and_then(|cache| cache.size_bytes), captured.remarks.iter().any(is_size))
    };
    document.run.machine.caches[1] = cache(2, 2 * MIB);
    let (alone, is_found) = size(&document);
    assert!(is_found && alone.is_some_and(|bytes| bytes > 3 * MIB), "{alone:?}");
    document.run.machine.caches.push(cache(3, 256 * MIB));
    assert_eq!(size(&document), (Some(2 * MIB), false), "the rest may be of the third");
}
