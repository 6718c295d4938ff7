//! Cores, TLBs and caches in machine files: by family, on a host, and from quiet moments.

use numalab_memory_model::machine::{Calls, Core, Tlb};
use numalab_memory_model::probe::{self, Visits};
use numalab_record::{
    AccessPattern, CellResult, Document, Experiment, LatencyCell, Metric, Pages, Sample,
};
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
fn a_core_whose_bandwidth_others_took_keeps_its_fill_buffers() {
    let mut document = run(2 * MIB, Vec::new());
    let samples = document.cells.iter_mut().flat_map(|cell| &mut cell.samples);
    // 11 lines at 100 ns.
    let reads = samples.filter(|sample| sample.metric == Metric::Bandwidth);
    reads.for_each(|sample| sample.value /= 4.0);
    let core = core_of(&document);
    assert_eq!((core.misses, core.prefetch), (16, Some(20)));
    let remarks = capture(&document).remarks;
    let said = |remark: &Remark| matches!(remark, Remark::CoreContended { measured: 11, .. });
    assert!(remarks.iter().any(said), "{remarks:?}");
}

#[test]
fn walkers_are_those_of_the_family_also_under_a_host() {
    let small = || apart(Pages::BASE_4K, 15.0);
    let walkers = |document: &Document| tlb_of(document).walkers;
    assert_eq!(walkers(&run(2 * MIB, small())), 4);
    assert_eq!(walkers(&run(MIB, small())), 2);
    let unknown = with_fact(run(2 * MIB, small()), "cpu_vendor", "Other");
    assert_eq!(walkers(&unknown), 6);
    let cells = [small(), apart(Pages::Transparent, 8.0)].concat();
    let guest = with_fact(run(2 * MIB, cells), "hypervisor", "KVM");
    assert_eq!(walkers(&guest), 4);
}

#[test]
fn walkers_are_as_many_as_independent_reads_of_pages_need() {
    let small = || apart(Pages::BASE_4K, 15.0);
    let with_reads = |read_ns: f64| {
        let mut document = run(2 * MIB, small());
        let mut cells = document.cells.iter_mut();
        let is_core = |cell: &&mut CellResult| matches!(cell.cell.experiment, Experiment::Core(_));
        let core = cells.find(is_core).expect("a core cell");
        let read =
            |sample: &Sample| Sample { metric: Metric::PageRead, value: read_ns, ..sample.clone() };
        let reads: Vec<Sample> = core.samples.iter().map(read).collect();
        core.samples.extend(reads);
        document
    };
    // A translation takes 15 ns for random pages, and 11 to 12 for pages in order.
    let walkers = [20.0, 6.0, 4.0, 1.0].map(|read_ns| tlb_of(&with_reads(read_ns)).walkers);
    assert_eq!(walkers, [1, 2, 3, 4], "at most those of the family");
    let remarks = capture(&with_reads(6.0)).remarks;
    assert!(remarks.contains(&Remark::WalkersFound { walkers: 2, read_ns: 6.0 }), "{remarks:?}");
    let assumed = Remark::TlbAssumed { upper_entries: 32, walkers: Some(4) };
    assert!(capture(&run(2 * MIB, small())).remarks.contains(&assumed), "not measured");
}

#[test]
fn page_faults_are_in_the_file_of_a_run_that_measured_them() {
    let faults = |times: &[(Metric, f64)]| {
        let mut document = run(2 * MIB, Vec::new());
        let mut cells = document.cells.iter_mut();
        let is_core = |cell: &&mut CellResult| matches!(cell.cell.experiment, Experiment::Core(_));
        let core = cells.find(is_core).expect("a core cell");
        let like = core.samples[0].clone();
        let sample = |&(metric, value): &(Metric, f64)| Sample { metric, value, ..like.clone() };
        core.samples.extend(times.iter().map(sample));
        capture(&document).figures.memory.faults
    };
    let stores = [(Metric::FirstLoad, 640.04), (Metric::FirstStore, 1650.0)];
    let found = faults(&stores).expect("page faults");
    assert_eq!((found.load_ns, found.store_ns, found.copy_ns), (640.0, 1650.0, 1650.0));
    assert_eq!((found.free_ns, found.huge_ns), (0.0, None), "not measured");
    let more = [(Metric::PageCopy, 2000.0), (Metric::FileLoad, 700.0), (Metric::HugeStore, 1.8e5)];
    let found = faults(&[&stores[..], &more].concat()).expect("page faults");
    assert_eq!((found.copy_ns, found.file_ns, found.huge_ns), (2000.0, 700.0, Some(1.8e5)));
    assert_eq!(faults(&[]), None, "a run of an earlier version");
}

#[test]
fn system_calls_are_in_the_file_of_a_run_that_measured_them() {
    let calls = |times: &[(Metric, f64)]| {
        let mut document = run(2 * MIB, Vec::new());
        let mut cells = document.cells.iter_mut();
        let is_core = |cell: &&mut CellResult| matches!(cell.cell.experiment, Experiment::Core(_));
        let core = cells.find(is_core).expect("a core cell");
        let like = core.samples[0].clone();
        let sample = |&(metric, value): &(Metric, f64)| Sample { metric, value, ..like.clone() };
        core.samples.extend(times.iter().map(sample));
        capture(&document).figures.memory.calls
    };
    let only = [(Metric::SystemCall, 163.24)];
    let more = [(Metric::Yield, 451.0), (Metric::PageMap, 1770.0), (Metric::FileRead, 150.0)];
    let wake = [(Metric::Wake, 9000.0), (Metric::FileOpen, 1500.04), (Metric::Cpuid, 3542.0)];
    let fork = [(Metric::Fork, 8e4), (Metric::ForkPage, 118.0), (Metric::Execute, 5e4)];
    let files = [(Metric::Read, 432.0), (Metric::Write, 734.0), (Metric::FileGrowth, 1468.0)];
    let pages =
        [(Metric::FilePage, 537.0), (Metric::PipePage, 332.0), (Metric::ForkMapping, 620.0)];
    let of = |[call_ns, yield_ns, map_ns, page_ns, wake_ns]: [f64; 5]| Calls {
        call_ns,
        yield_ns,
        map_ns,
        page_ns,
        wake_ns,
        ..Calls::default()
    };
    assert_eq!(calls(&only), Some(of([163.2, 163.2, 163.2, 0.0, 0.0])));
    let all = [&only[..], &more, &wake, &fork, &files, &pages].concat();
    let of_processes = Calls {
        open_ns: 1500.0,
        fork_ns: 8e4,
        fork_page_ns: 118.0,
        fork_map_ns: 620.0,
        read_ns: 432.0,
        write_ns: 734.0,
        grow_ns: 1468.0,
        new_page_ns: 537.0,
        pipe_page_ns: 332.0,
        execute_ns: 5e4,
        cpuid_ns: 3542.0,
        ..of([163.2, 451.0, 1770.0, 150.0, 9000.0])
    };
    assert_eq!(calls(&all), Some(of_processes));
    assert_eq!(calls(&[]), None, "a run of an earlier version");
}

#[test]
fn a_guests_huge_pages_on_small_ones_of_its_host_are_in_no_tlb() {
    let at = |bit: u64| {
        let (size_bytes, pages) = ((2 * MIB) << bit, Pages::Transparent);
        let cost_ns = if bit <= 6 { 0.0 } else { 15.0 };
        let pattern = AccessPattern::OneLinePer(2 * MIB);
        let of = LatencyCell { size_bytes, pattern, pages, ..chase(0, 0) };
        let mut cell = latency(of, dense_ns(64 << bit, 2 * MIB) + cost_ns);
        cell.placements[0].bytes_per_page_size = [(2 * MIB, size_bytes)].into();
        cell
    };
    let huge: Vec<CellResult> = (4..=9).map(at).collect();
    let cells = [apart(Pages::BASE_4K, 15.0), apart(Pages::Transparent, 8.0), huge].concat();
    let hardware = run(2 * MIB, cells);
    let has_huge = |document: &Document| {
        tlb_of(document).parts.iter().any(|part| part.page_bytes == [2 * MIB])
    };
    assert!(has_huge(&hardware));
    assert!(!has_huge(&with_fact(hardware, "hypervisor", "KVM")));
}

#[test]
fn a_line_in_another_page_takes_what_random_loads_over_small_pages_take_less_their_walks() {
    let over = |pattern, ns| {
        let (size_bytes, pages) = (128 * MIB, Pages::BASE_4K);
        latency(LatencyCell { size_bytes, pattern, pages, ..chase(0, 0) }, ns)
    };
    let orders = vec![over(AccessPattern::Random, 160.0), over(AccessPattern::PageLocal, 105.0)];
    let found = |cells: Vec<CellResult>| {
        let captured = capture(&run(2 * MIB, cells));
        let latency_ps = captured.figures.machine.access[0].read_latency_ps.expect("a latency");
        assert_eq!(latency_ps, 100_000, "within a page");
        (100.0 + captured.figures.memory.other_page_ns.unwrap_or_default(), captured)
    };
    let (memory_ns, captured) = found([apart(Pages::BASE_4K, 15.0), orders].concat());
    // A walk takes at least 15 ns, and some lines and tables are in the L2.
    assert!((135.0..150.0).contains(&memory_ns), "{memory_ns}");
    let figures = &captured.figures;
    let (caches, tlb) = (figures.caches(), figures.memory.tlb.as_ref().expect("a TLB"));
    let modelled_ns = probe::memory_ns(&caches, tlb, 128 * MIB, 160.0).expect("misses");
    assert!((modelled_ns - memory_ns).abs() < 0.1, "{modelled_ns}");
    let said = |remark: &Remark| matches!(remark, Remark::OtherPages { load_ns: 160.0, .. });
    assert!(captured.remarks.iter().any(said), "{:?}", captured.remarks);
    assert_eq!(found(Vec::new()).0, 100.0, "nothing else was measured");
}

#[test]
fn a_shared_cache_takes_the_least_of_its_plateau_and_a_private_one_its_middle() {
    let mut document = run(2 * MIB, Vec::new());
    let cells = document.cells.iter_mut();
    let of_l2 = cells.filter(
        |cell| matches!(&cell.cell.experiment, Experiment::Latency(of) if of.size_bytes == MIB),
    );
    of_l2.flat_map(|cell| &mut cell.samples).for_each(|sample| sample.value = 4.8);
    let l2_ns = |document: &Document| capture(document).figures.memory.cache_latency_ns[1];
    assert!((l2_ns(&document) - 5.0).abs() < 0.01, "{}", l2_ns(&document));
    document.run.machine.caches[1].cpus.insert(CpuId(1));
    assert!((l2_ns(&document) - 4.8).abs() < 0.01, "{}", l2_ns(&document));
}

#[test]
fn a_host_has_small_pages_if_a_guests_huge_ones_gain_little_and_a_walk_takes_the_rest() {
    let found = |huge_ns: f64, hypervisor: bool| {
        let small = apart(Pages::BASE_4K, 15.0);
        let mut document = run(2 * MIB, [small, apart(Pages::Transparent, huge_ns)].concat());
        if hypervisor {
            document = with_fact(document, "hypervisor", "KVM");
        }
        let figures = capture(&document).figures;
        let tlb = figures.memory.tlb.clone().expect("a TLB");
        let modelled_ns = probe::translation_ns(&figures.caches(), &tlb, 16_384, Visits::Random);
        (tlb.host_page_bytes, tlb.walk_ns, modelled_ns)
    };
    // 13 ns beyond the second level: 5 for an entry in the L2, a part of memory's 100, and the rest
    // for the walk.
    for (huge_ns, hypervisor, host) in [(0.0, true, Some(2 << 20)), (8.0, false, None)] {
        let (bytes, walk_ns, modelled_ns) = found(huge_ns, hypervisor);
        assert_eq!(bytes, host);
        assert!((5.0..9.0).contains(&walk_ns), "{walk_ns}");
        assert!((modelled_ns - 15.0).abs() < 0.01, "{modelled_ns}");
    }
    // The host's entries take as long again, and some of their upper levels are not cached.
    let (bytes, walk_ns, modelled_ns) = found(8.0, true);
    assert_eq!(bytes, Some(4096));
    assert!(walk_ns < 4.0 && modelled_ns > 14.9, "{walk_ns}, {modelled_ns}");
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
