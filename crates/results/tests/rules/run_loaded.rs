//! Latency under load: peaks, knees, saturation and doubts about a curve; plateaus of sweeps.

use numalab_record::{
    CellResult, Document, Experiment, LatencyCell, LoadedCell, Metric, StreamKernel,
};
use numalab_results::Report;
use numalab_results::capture::curve_families;
use numalab_results::run::{Doubt, LevelName, LoadedCurve, Peak, Summary};
use numalab_topology::{Cache, CacheKind, CpuId, CpuSet, NodeId, NodeSet};

use crate::run_lab::{
    MIB, bandwidth, cell, chase, document, latency, loaded, stream, under_load, worker,
};

/// Returns a curve with 100 ns without load, then these points: delay, latency, GB/s.
fn curve(points: &[(u32, f64, f64)]) -> Vec<CellResult> {
    let idle = under_load(None, 100.0, None);
    let loads = points.iter().map(|&(delay, ns, gb)| under_load(Some(delay), ns, Some(gb)));
    std::iter::once(idle).chain(loads).collect()
}

const SATURATED: [(u32, f64, f64); 4] =
    [(100, 110.0, 5.0), (0, 400.0, 19.5), (10, 250.0, 19.2), (50, 130.0, 12.0)];

fn only<'a>(summary: &'a Summary<'_>) -> &'a LoadedCurve<'a> {
    let [curve] = &summary.loaded[..] else { panic!("{:?}", summary.loaded) };
    curve
}

#[test]
fn points_come_by_rising_load_with_the_idle_one_first() {
    let of = document(curve(&SATURATED));
    let summary = Summary::of(&of);
    let found = only(&summary);
    let delays: Vec<Option<u32>> = found.points.iter().map(|point| point.delay).collect();
    assert_eq!(delays, [None, Some(100), Some(50), Some(10), Some(0)]);
    assert_eq!(found.points[0].bandwidth_gb_per_s(), 0.0);
    assert_eq!(found.peak, Some(Peak { gb_per_s: 19.5, latency_ns: 400.0 }));
    // The first point within 5 % of the peak that waits twice as long as without load.
    assert_eq!(found.saturation, Some(Peak { gb_per_s: 19.2, latency_ns: 250.0 }));
    let knee = found.knee.expect("latency doubles");
    assert!(knee.bandwidth > 12.0 && knee.bandwidth <= 19.2 && knee.idle_ns == 100.0, "{knee:?}");
}

#[test]
fn cores_that_do_not_get_so_far_saturate_nothing() {
    let of = document(curve(&[(100, 105.0, 5.0), (0, 150.0, 12.0)]));
    let summary = Summary::of(&of);
    let found = only(&summary);
    assert_eq!(found.peak, Some(Peak { gb_per_s: 12.0, latency_ns: 150.0 }));
    assert_eq!((found.saturation, found.knee, found.doubt), (None, None, None));
}

#[test]
fn memory_is_saturated_where_more_cores_add_less_than_a_quarter_of_their_share() {
    let with = |gb_per_s: f64| {
        let more = bandwidth(stream(vec![worker(0, 0), worker(1, 0)]), gb_per_s);
        let of = document([curve(&[(0, 150.0, 12.0)]), vec![more]].concat());
        Summary::of(&of).loaded[0].saturation
    };
    assert_eq!(with(15.0), Some(Peak { gb_per_s: 12.0, latency_ns: 150.0 }), "a quarter more");
    assert_eq!(with(15.2), None);
    let elsewhere = bandwidth(stream(vec![worker(2, 0), worker(3, 0)]), 12.0);
    let of = document([curve(&[(0, 150.0, 12.0)]), vec![elsewhere]].concat());
    assert_eq!(Summary::of(&of).loaded[0].saturation, None, "they are not the load workers' cores");
}

#[test]
fn the_limit_of_the_loading_cpus_is_not_called_that_of_the_memory() {
    let said = |gb_per_s: f64| {
        let more = bandwidth(stream(vec![worker(0, 0), worker(1, 0)]), gb_per_s);
        let of = document([curve(&SATURATED), vec![more]].concat());
        Summary::of(&of).page().markdown()
    };
    let limit = "This is the limit of 1 loading cpu, not of the memory: 2 cpus move 39.0 GB/s.";
    assert!(said(39.0).contains(limit), "{}", said(39.0));
    assert!(!said(20.0).contains("This is the limit of"));
}

#[test]
fn a_curve_with_a_disturbed_or_slow_idle_point_is_in_doubt() {
    let mut cells = curve(&SATURATED);
    let disturb = |cells: &mut Vec<CellResult>, windows: usize| {
        let samples = cells[0].samples.iter_mut().take(windows);
        samples.for_each(|sample| sample.disturbed = Some("steal".to_owned()));
    };
    disturb(&mut cells, 1);
    let doubt = |cells: Vec<CellResult>| Summary::of(&document(cells)).loaded[0].doubt;
    assert_eq!(doubt(cells.clone()), None, "a third of its windows");
    disturb(&mut cells, 2);
    assert_eq!(doubt(cells.clone()), Some(Doubt::Disturbed(2.0 / 3.0)));
    let of = document(cells);
    let summary = Summary::of(&of);
    assert_eq!((only(&summary).knee, only(&summary).saturation), (None, None));
    let fast = |ns| doubt(curve(&[(0, ns, 19.0)]));
    assert_eq!(fast(91.0), None);
    assert_eq!(fast(90.0), Some(Doubt::IdleSlower { idle_ns: 100.0, loaded_ns: 90.0 }));
}

#[test]
fn stores_move_the_lines_that_they_read_first() {
    let write = |delay| LoadedCell { kernel: StreamKernel::Write, ..loaded(delay) };
    let mut full = cell(Experiment::Loaded(write(Some(0))), Metric::Latency, 300.0);
    let moved = cell(Experiment::Loaded(write(Some(0))), Metric::Bandwidth, 8.0).samples;
    full.samples.extend(moved);
    let idle = cell(Experiment::Loaded(write(None)), Metric::Latency, 100.0);
    let of = document(vec![idle, full]);
    let summary = Summary::of(&of);
    assert_eq!(only(&summary).peak, Some(Peak { gb_per_s: 16.0, latency_ns: 300.0 }));
}

#[test]
fn kernels_are_separate_curves_of_one_family() {
    let write = |delay| LoadedCell { kernel: StreamKernel::WriteNt, ..loaded(delay) };
    let of_write = |delay: Option<u32>, ns, gb: f64| {
        let mut of = cell(Experiment::Loaded(write(delay)), Metric::Latency, ns);
        if delay.is_some() {
            of.samples
                .extend(cell(Experiment::Loaded(write(delay)), Metric::Bandwidth, gb).samples);
        }
        of
    };
    let writes = vec![of_write(None, 100.0, 0.0), of_write(Some(0), 300.0, 9.0)];
    let of = document([curve(&SATURATED), writes].concat());
    let summary = Summary::of(&of);
    let [read, write] = &summary.loaded[..] else { panic!("{:?}", summary.loaded) };
    assert!(read.is_of_family(write));
    let families = curve_families(&summary);
    let [family] = &families[..] else { panic!("{families:?}") };
    assert_eq!((family.node, &family.from), (NodeId(0), &NodeSet::from_iter([NodeId(0)])));
    let shares: Vec<f64> = family.curves.iter().map(|curve| curve.writes_percent).collect();
    assert_eq!(shares, [0.0, 100.0]);
    let points = &family.curves[0].points;
    assert_eq!(
        points[..],
        [(0.0, 100.0), (5000.0, 110.0), (12000.0, 130.0), (19200.0, 250.0), (19500.0, 400.0)]
    );
    // One loading cpu reaches its own limit, which is not the memory's.
    let page = summary.page().html();
    assert!(page.contains("limit of load GB/s") && !page.contains("saturated GB/s"), "{page}");
}

#[test]
fn a_loaded_cell_without_bandwidth_is_not_a_point() {
    let of = document(vec![under_load(None, 100.0, None), under_load(Some(0), 300.0, None)]);
    let summary = Summary::of(&of);
    assert_eq!((only(&summary).points.len(), only(&summary).peak), (1, None));
}

/// Returns a sweep on cpu 0: 1 ns up to 32 KiB, 4 ns up to 1 MiB, 90 ns from 4 MiB on.
fn sweep() -> Vec<CellResult> {
    let at = |bytes: u64| {
        let ns = match bytes >> 10 {
            ..=32 => 1.0,
            33..=1024 => 4.0,
            1025..=2048 => 30.0,
            _ => 90.0,
        };
        latency(LatencyCell { size_bytes: bytes, ..chase(0, 0) }, ns)
    };
    let octaves = (12..=26).flat_map(|bit| [1_u64 << bit, 3_u64 << (bit - 1)]);
    octaves.map(at).collect()
}

fn reported(level: u8, size_bytes: u64) -> Cache {
    Cache {
        level,
        kind: CacheKind::Unified,
        size_bytes: Some(size_bytes),
        line_bytes: Some(64),
        ways: Some(8),
        cpus: CpuSet::from_iter([CpuId(0)]),
    }
}

fn named(caches: &[(u8, u64)]) -> (Vec<LevelName>, Vec<(u8, u64)>) {
    let mut of = document(sweep());
    of.run.machine.caches = caches.iter().map(|&(level, bytes)| reported(level, bytes)).collect();
    let summary = Summary::of(&of);
    let curve = &summary.curves[0];
    (curve.levels.iter().map(|level| level.name).collect(), curve.not_found.clone())
}

#[test]
fn plateaus_are_named_after_the_reported_caches_and_missing_ones_are_listed() {
    use LevelName::{Cache, Memory, Unexplained};
    let (names, lost) = named(&[(1, 32 << 10), (2, MIB)]);
    assert_eq!((&names[..], &lost[..]), (&[Cache(1), Cache(2), Memory][..], &[][..]));
    let (names, lost) = named(&[(1, 32 << 10), (2, MIB), (3, 32 * MIB)]);
    assert_eq!((&names[..], &lost[..]), (&[Cache(1), Cache(2), Memory][..], &[(3, 32 * MIB)][..]));
    let (names, _) = named(&[(1, 32 << 10), (2, 512 * MIB)]);
    assert_eq!(
        names,
        [Cache(1), Cache(2), Unexplained],
        "a share of it, and memory is not reached"
    );
    let (names, _) = named(&[]);
    assert_eq!(names, [Unexplained, Unexplained, Memory]);
}

#[test]
fn the_caches_hold_up_to_the_measured_end_of_the_last_or_the_reported_size() {
    let cached = |cells: Vec<CellResult>, bytes: u64| {
        let mut of = document(cells);
        of.run.machine.caches = vec![reported(1, 32 << 10), reported(2, bytes)];
        Summary::of(&of).cached_bytes()
    };
    let ends = cached(sweep(), MIB).expect("the sweep found it");
    assert!(ends > MIB as f64 && ends < 3.0 * MIB as f64, "{ends}");
    assert_eq!(cached(Vec::new(), MIB), Some(MIB as f64));
    assert_eq!(Summary::of(&document(Vec::new())).cached_bytes(), None);
}

#[test]
fn two_sizes_are_not_a_curve_and_neither_is_one_line_of_each_page() {
    let two: Vec<CellResult> = sweep().into_iter().take(2).collect();
    assert!(Summary::of(&document(two)).curves.is_empty());
    let lines = (0..4).map(|at: u64| {
        let pattern = numalab_record::AccessPattern::OneLinePer(4096);
        latency(LatencyCell { pattern, size_bytes: MIB << at, ..chase(0, 0) }, 10.0)
    });
    let of: Document = document(lines.collect());
    assert!(Summary::of(&of).curves.is_empty());
}
