//! Machine files from runs: figures taken over, derived, replaced and omitted.

use numalab_formats::machine_toml::LoadFigures;
use numalab_memory_model::curve::Curve;
use numalab_memory_model::machine::Family;
use numalab_record::{
    BandwidthCell, CellResult, Document, Experiment, LatencyCell, LoadedCell, Metric, Pages,
    Sample, StreamKernel,
};
use numalab_results::capture::{Captured, NoLoad, Remark, capture};
use numalab_results::machine::{Access, FigurePair, LoadedPlace, MachineComparison, MachineFigure};
use numalab_topology::{Cache, CacheKind, CpuId, CpuSet, HugePagePool, NodeId, NodeSet};

use crate::run_lab::{
    MIB, bandwidth, c2c, cell, chase, core, document, latency, loaded, stream, under_load,
    with_fact, worker,
};

fn cache(level: u8, kind: CacheKind, size_bytes: u64) -> Cache {
    Cache {
        level,
        kind,
        size_bytes: Some(size_bytes),
        line_bytes: Some(64),
        ways: Some(8),
        cpus: CpuSet::from_iter([CpuId(0)]),
    }
}

/// Returns a sweep: 1 ns up to 32 KiB, 4 ns up to 1 MiB, then memory.
fn sweep() -> Vec<CellResult> {
    let at = |bit: u64| {
        let bytes = 1_u64 << bit;
        let ns = if bytes <= 32 << 10 {
            1.0
        } else if bytes <= MIB {
            4.0
        } else {
            95.0
        };
        latency(LatencyCell { size_bytes: bytes, ..chase(0, 0) }, ns)
    };
    (12..=26).map(at).collect()
}

fn with_caches(cells: Vec<CellResult>, caches: &[Cache]) -> Captured {
    let mut of = document(cells);
    of.run.machine.caches = caches.to_vec();
    capture(&of)
}

/// Returns the remarks of some kinds.
fn remarks(captured: &Captured, pick: impl Fn(&Remark) -> bool) -> Vec<Remark> {
    captured.remarks.iter().filter(|remark| pick(remark)).cloned().collect()
}

#[test]
fn a_run_that_measured_nothing_reports_every_part_as_left_out() {
    let captured = capture(&document(Vec::new()));
    let no_latency = |from, to| Remark::NoLatency { from: NodeId(from), to: NodeId(to) };
    let no_load = |node| Remark::NoLoad { node: NodeId(node), why: NoLoad::NotMeasured };
    let expected = [
        no_latency(0, 0),
        no_latency(0, 1),
        no_latency(1, 0),
        no_latency(1, 1),
        Remark::NoSweep,
        Remark::NoTlb,
        no_load(0),
        no_load(1),
        Remark::NoCore,
        Remark::NoTransfers,
    ];
    assert_eq!(captured.remarks, expected);
    assert_eq!((captured.chase, captured.figures.memory.load.len()), (None, 0));
}

#[test]
fn momentary_facts_are_not_part_of_a_machine() {
    let mut of = document(Vec::new());
    of.run.machine.nodes[0].free_bytes = Some(7);
    of.run.machine.nodes[1].huge_pages =
        vec![HugePagePool { page_bytes: 2 << 20, total: 3, free: 1 }];
    let machine = capture(&of).figures.machine;
    assert!(
        machine.nodes.iter().all(|node| node.free_bytes.is_none() && node.huge_pages.is_empty())
    );
    assert_eq!((machine.nodes.len(), machine.cpus.len()), (2, 4));
}

#[test]
fn latencies_that_were_measured_are_taken_over_and_the_others_named() {
    let captured =
        capture(&document(vec![latency(chase(0, 0), 100.0), latency(chase(0, 1), 180.0)]));
    let missing = remarks(&captured, |remark| matches!(remark, Remark::NoLatency { .. }));
    let of_node_1 = |to| Remark::NoLatency { from: NodeId(1), to: NodeId(to) };
    assert_eq!(missing, [of_node_1(0), of_node_1(1)]);
    let access: Vec<_> = captured
        .figures
        .machine
        .access
        .iter()
        .map(|of| (of.target.0, of.read_latency_ps))
        .collect();
    assert_eq!(access, [(0, Some(100_000)), (1, Some(180_000))]);
    let (_, bytes, pages) = captured.chase.expect("a chase");
    assert_eq!((bytes, pages), (1 << 30, Pages::BASE_4K));
}

#[test]
fn caches_have_hit_times_and_implausible_sizes_are_replaced_by_measured_ones() {
    let caches = [
        cache(1, CacheKind::Instruction, 64 << 10),
        cache(1, CacheKind::Data, 32 << 10),
        cache(2, CacheKind::Unified, 3 * MIB),
        cache(3, CacheKind::Unified, 512 * MIB),
    ];
    let captured = with_caches(sweep(), &caches);
    assert_eq!(captured.figures.memory.cache_latency_ns.len(), 2, "{captured:?}");
    let rounded: Vec<f64> =
        captured.figures.memory.cache_latency_ns.iter().map(|ns| ns.round()).collect();
    assert_eq!(rounded, [1.0, 4.0]);
    let of_caches = remarks(&captured, |remark| {
        matches!(remark, Remark::CacheFound { .. } | Remark::NoCache { .. } | Remark::NoSweep)
    });
    let [
        Remark::CacheFound { level: 2, found_bytes, reported_bytes },
        Remark::NoCache { level: 3 },
    ] = of_caches[..]
    else {
        panic!("{of_caches:?}")
    };
    assert_eq!((reported_bytes, found_bytes % 512), (3 * MIB, 0), "in whole sets of 8 lines");
    assert!((MIB..=2 * MIB).contains(&found_bytes), "{found_bytes}");
    let sizes: Vec<_> =
        captured.figures.machine.caches.iter().map(|of| (of.level, of.size_bytes)).collect();
    let expected = [(1, Some(64 << 10)), (1, Some(32 << 10)), (2, Some(found_bytes))];
    assert_eq!(sizes, expected, "the instruction cache stays");
}

#[test]
fn a_last_cache_that_the_sweep_does_not_leave_has_at_least_its_largest_size() {
    let at = |bit: u64| {
        let bytes = 1_u64 << bit;
        let levels = [(32 << 10, 1.0), (MIB, 4.0), (16 * MIB, 12.8), (u64::MAX, 95.0)];
        let (_, ns) = levels.into_iter().find(|(most, _)| bytes <= *most).expect("the last one");
        latency(LatencyCell { size_bytes: bytes, ..chase(0, 0) }, ns)
    };
    let caches = [
        cache(1, CacheKind::Data, 32 << 10),
        cache(2, CacheKind::Unified, MIB),
        cache(3, CacheKind::Unified, 4 * MIB),
    ];
    let captured = with_caches((12..=24).chain([30]).map(at).collect(), &caches);
    let last = captured.figures.machine.caches.iter().find(|of| of.level == 3);
    assert_eq!(last.and_then(|of| of.size_bytes), Some(16 * MIB), "{captured:?}");
}

#[test]
fn a_guest_whose_last_cache_seems_smaller_shares_it_with_others_that_evict_its_lines() {
    let at = |bit: u64| {
        let bytes = 1_u64 << bit;
        let levels = [(32 << 10, 1.0), (MIB, 4.0), (4 * MIB, 12.8), (u64::MAX, 95.0)];
        let (_, ns) = levels.into_iter().find(|(most, _)| bytes <= *most).expect("the last one");
        latency(LatencyCell { size_bytes: bytes, ..chase(0, 0) }, ns)
    };
    let of = |hypervisor: bool| {
        let mut of = document((12..=26).map(at).collect());
        let shared = CpuSet::from_iter([CpuId(0), CpuId(1)]);
        of.run.machine.caches = vec![
            cache(1, CacheKind::Data, 32 << 10),
            cache(2, CacheKind::Unified, MIB),
            Cache { cpus: shared, ..cache(3, CacheKind::Unified, 32 * MIB) },
        ];
        let of = if hypervisor { with_fact(of, "hypervisor", "KVM") } else { of };
        let captured = capture(&of);
        let figures = captured.figures;
        (figures.machine.caches[2].size_bytes, figures.memory.life_ns, captured.remarks)
    };
    let (bytes, life_ns, remarks) = of(true);
    assert_eq!(bytes, Some(32 * MIB), "programs that use lines again soon have all of it");
    // The first lines are evicted after 0.3 of the mean time, which is the time of a round over 4
    // to 8 MiB, reduced by the share of the cache that the round occupies.
    let life_ns = life_ns.expect("a life");
    let round_ns = |mib: f64| mib * MIB as f64 / 64.0 * 12.8 / 0.3 / (1.0 - mib / 32.0);
    assert!((round_ns(4.0)..round_ns(8.0)).contains(&life_ns), "{life_ns}");
    assert!(remarks.contains(&Remark::CacheShared { level: 3, life_ns }), "{remarks:?}");
    assert_eq!(of(false).1, None, "hardware");
}

#[test]
fn a_core_has_the_lines_under_way_that_its_reads_need_and_half_of_them_at_most_are_fetched_ahead() {
    let local = latency(chase(0, 0), 100.0);
    let reads = |gb| bandwidth(stream(vec![worker(0, 0)]), gb);
    let of = |gb, ghz| {
        let captured = capture(&document(vec![local.clone(), reads(gb), core(0, ghz)]));
        let derived = remarks(&captured, |remark| matches!(remark, Remark::CoreDerived { .. }));
        (captured.figures.memory.core.expect("a core"), derived)
    };
    // 12.8 GB/s for 100 ns are 20 lines of 64 bytes.
    let (found, derived) = of(12.8, 4.0);
    let expected =
        Remark::CoreDerived { lines: 20, prefetch: 10, gb_per_s: 12.8, window: 512, per_cycle: 2 };
    assert_eq!(derived, [expected]);
    assert_eq!((found.misses, found.prefetch, found.writes), (10, Some(10), None));
    assert!((found.ns_per_instruction - 0.125).abs() < 1e-9, "{found:?}");
    let (wide, _) = of(64.0, 4.0);
    assert_eq!((wide.misses, wide.prefetch), (80, Some(20)), "no more than 20 of 100");
    let (slow, _) = of(0.1, 4.0);
    assert_eq!((slow.misses, slow.prefetch), (1, None));
}

#[test]
fn writes_that_bypass_caches_and_atomic_additions_are_taken_over_where_they_were_measured() {
    let nt = BandwidthCell { kernel: StreamKernel::WriteNt, ..stream(vec![worker(0, 0)]) };
    let mut of_core = core(0, 2.0);
    let add = |sample: &Sample| Sample { metric: Metric::AtomicAdd, value: 6.0, ..sample.clone() };
    let without = vec![
        latency(chase(0, 0), 100.0),
        bandwidth(stream(vec![worker(0, 0)]), 12.8),
        of_core.clone(),
    ];
    let captured = capture(&document(without.clone()));
    assert!(captured.remarks.contains(&Remark::NoAtomicAdd), "{:?}", captured.remarks);
    let adds: Vec<Sample> = of_core.samples.iter().map(add).collect();
    of_core.samples.extend(adds);
    let cells = [sweep(), without[..2].to_vec(), vec![of_core, bandwidth(nt, 6.4)]].concat();
    let captured = with_caches(
        cells,
        &[cache(1, CacheKind::Data, 32 << 10), cache(2, CacheKind::Unified, MIB)],
    );
    let found = captured.figures.memory.core.expect("a core");
    assert_eq!(found.writes, Some(10));
    assert!((found.atomic_ns.unwrap() - 5.0).abs() < 1e-6, "beyond a hit of 1 ns: {found:?}");
    assert!(!captured.remarks.contains(&Remark::NoAtomicAdd));
}

#[test]
fn a_core_takes_the_table_of_its_family_where_there_is_one() {
    let cells = || {
        vec![latency(chase(0, 0), 100.0), bandwidth(stream(vec![worker(0, 0)]), 12.8), core(0, 4.0)]
    };
    let mut known = with_fact(document(cells()), "cpu_vendor", "AuthenticAMD");
    known.run.machine.caches = vec![cache(2, CacheKind::Unified, MIB)];
    let captured = capture(&known);
    let timing = captured.figures.memory.core.unwrap().timing.expect("a table");
    assert_eq!((timing.family, timing.cycle_ns), (Family::Zen4, 0.25));
    assert!(captured.remarks.contains(&Remark::CoreTimedByL2 { family: Family::Zen4 }));
    let unknown = capture(&with_fact(document(cells()), "cpu_vendor", "Other"));
    let omitted = Remark::NoTiming { cpu: "Other".to_owned() };
    assert!(
        unknown.remarks.contains(&omitted) && unknown.figures.memory.core.unwrap().timing.is_none()
    );
    let emulated = capture(&with_fact(known, "time", "virtual"));
    assert_eq!(emulated.figures.memory.core.unwrap().timing, None, "one instruction a cycle");
}

#[test]
fn an_unknown_core_takes_the_nearest_table_and_reports_it() {
    let captured_as = |family: &str, model: &str| {
        let cells = vec![
            latency(chase(0, 0), 100.0),
            bandwidth(stream(vec![worker(0, 0)]), 12.8),
            core(0, 4.0),
        ];
        let known = with_fact(document(cells), "cpu_vendor", "AuthenticAMD");
        let mut known = with_fact(known, "cpu_family", family);
        known = with_fact(known, "cpu_model_number", model);
        known.run.machine.caches = vec![cache(2, CacheKind::Unified, 512 << 10)];
        let captured = capture(&known);
        let core = captured.figures.memory.core.unwrap();
        (core.timing.expect("a table").family, core.instructions, captured.remarks)
    };
    for (model, family, window) in [("1", Family::Zen1, 192), ("49", Family::Zen2, 224)] {
        let (found, instructions, remarks) = captured_as("23", model);
        assert_eq!((found, instructions), (family, window));
        assert!(remarks.contains(&Remark::CoreTimed { family }), "{remarks:?}");
    }
    let (found, _, remarks) = captured_as("26", "2");
    let cpu = "AuthenticAMD family 26 model 2".to_owned();
    assert_eq!(found, Family::Zen4);
    assert!(remarks.contains(&Remark::CoreNearest { family: Family::Zen4, cpu }), "{remarks:?}");
}

#[test]
fn an_emulated_core_runs_one_instruction_a_cycle() {
    let cells = vec![
        latency(chase(0, 0), 100.0),
        bandwidth(stream(vec![worker(0, 0)]), 12.8),
        core(0, 4.0),
    ];
    let captured = capture(&with_fact(document(cells), "time", "virtual"));
    assert!((captured.figures.memory.core.unwrap().ns_per_instruction - 0.25).abs() < 1e-9);
}

/// Returns four pairs of cpus: two within their groups, two between nodes.
fn transfers() -> Vec<CellResult> {
    vec![c2c(0, 1, 0, 40.0), c2c(2, 3, 1, 44.0), c2c(0, 2, 0, 200.0), c2c(1, 3, 0, 220.0)]
}

#[test]
fn a_line_takes_half_of_the_median_round_trip_and_every_kind_of_pair_must_be_there() {
    let found = capture(&document(transfers())).figures.memory.transfers.expect("all kinds");
    assert_eq!(found.group_ns, 21.0);
    assert_eq!(
        found.node_ns,
        [[105.0, 105.0], [105.0, 105.0]],
        "within a node there is no other group"
    );
    let without = |from: usize| {
        let captured = capture(&document(transfers().split_off(from)));
        (
            captured.figures.memory.transfers.is_none(),
            captured.remarks.contains(&Remark::NoTransfers),
        )
    };
    assert_eq!(without(2), (true, true), "none within a group");
    let mut inside = document(transfers()[..2].to_vec());
    assert!(capture(&inside).figures.memory.transfers.is_none(), "none between nodes");
    inside.run.machine.cpus.truncate(2);
    let alone = capture(&inside).figures.memory.transfers.expect("there are no others");
    assert_eq!((alone.group_ns, &alone.node_ns[0][..]), (20.0, &[20.0, 20.0][..]));
}

#[test]
fn siblings_of_a_core_say_nothing_of_lines_between_cores() {
    let mut of = document(transfers());
    of.run.machine.cpus[1].core = Some(0);
    let found = capture(&of).figures.memory.transfers.expect("all kinds");
    assert_eq!(found.group_ns, 22.0, "cpu 2 and 3 alone");
}

fn saturated() -> Vec<CellResult> {
    vec![
        under_load(None, 100.04, None),
        under_load(Some(50), 130.0, Some(12.0)),
        under_load(Some(10), 120.0, Some(15.0)),
        under_load(Some(5), 250.0, Some(19.2)),
        under_load(Some(0), 400.0, Some(19.0)),
    ]
}

#[test]
fn a_saturated_curve_becomes_one_of_rising_traffic_and_latency() {
    let captured = capture(&document(saturated()));
    let points = vec![(0.0, 100.0), (12_000.0, 130.0), (15_000.0, 130.0), (19_200.0, 250.0)];
    let curves = vec![Curve { writes_percent: 0.0, points }];
    let nodes = NodeSet::from_iter([NodeId(0)]);
    let load = LoadFigures { nodes, from: None, peak_mb_s: None, curves };
    assert_eq!(captured.figures.memory.load, [load], "less traffic behind the peak is left out");
    let without = remarks(&captured, |remark| matches!(remark, Remark::NoLoad { .. }));
    assert_eq!(without, [Remark::NoLoad { node: NodeId(1), why: NoLoad::NotMeasured }]);
}

#[test]
fn what_others_add_under_a_light_load_is_not_part_of_a_curve() {
    let mut cells = saturated();
    let light =
        [under_load(Some(4000), 280.0, Some(0.2)), under_load(Some(2000), 320.0, Some(0.4))];
    cells.splice(1..1, light);
    let captured = capture(&document(cells));
    // Without load 100 ns, under 1 and 2 % of the traffic 280 and 320: 200 ns are of others.
    let points = vec![
        (0.0, 100.0),
        (200.0, 100.0),
        (400.0, 120.0),
        (12_000.0, 120.0),
        (15_000.0, 120.0),
        (19_200.0, 120.0),
    ];
    assert_eq!(captured.figures.memory.load[0].curves[0].points, points);
}

#[test]
fn a_node_without_a_curve_has_a_reason() {
    let why = |cells| {
        let captured = capture(&document(cells));
        match remarks(&captured, |remark| matches!(remark, Remark::NoLoad { .. }))[0] {
            Remark::NoLoad { node: NodeId(0), why } => why,
            ref other => panic!("{other:?}"),
        }
    };
    let few = vec![under_load(None, 100.0, None), under_load(Some(0), 120.0, Some(5.0))];
    assert_eq!(why(few), NoLoad::NotSaturated { most_mb_s: 5000 });
    let mut disturbed = saturated();
    disturbed[0].samples.iter_mut().for_each(|sample| sample.disturbed = Some("steal".to_owned()));
    assert_eq!(why(disturbed), NoLoad::Doubtful);
}

#[test]
fn load_from_another_node_alone_is_the_link_between_them() {
    let from = |cpus: &[u32], delay| LoadedCell {
        load: cpus.iter().map(|&cpu| worker(cpu, 0)).collect(),
        ..loaded(delay)
    };
    let way = |cpus: &[u32]| {
        let of = |delay: Option<u32>, ns, gb: f64| {
            let experiment = Experiment::Loaded(from(cpus, delay));
            let mut of = cell(experiment.clone(), Metric::Latency, ns);
            if delay.is_some() {
                of.samples.extend(cell(experiment, Metric::Bandwidth, gb).samples);
            }
            of
        };
        let cells = vec![of(None, 100.0, 0.0), of(Some(0), 300.0, 9.0)];
        let loads = capture(&document(cells)).figures.memory.load;
        let one = |set: &NodeSet| set.iter().next().expect("a node");
        let way = |load: &LoadFigures| (one(&load.nodes).0, load.from.as_ref().map(one));
        loads.iter().map(way).collect::<Vec<_>>()
    };
    assert_eq!(way(&[2, 3]), [(0, Some(NodeId(1)))]);
    assert_eq!(way(&[1, 2]), [(0, None)], "its own cores load it too");
    assert_eq!(way(&[9]), [], "nobody knows where cpu 9 is");
}

/// Compares the captured machine with another one.
fn compared(file: &Document, result: &Document, margin: f64) -> MachineComparison {
    MachineComparison::of(&capture(file).figures, &capture(result).figures, margin)
}

#[test]
fn two_captures_are_compared_figure_by_figure_with_their_units() {
    let file = document([saturated(), transfers(), vec![latency(chase(0, 1), 180.0)]].concat());
    let mut slower = file.clone();
    let samples = slower.cells.iter_mut().flat_map(|cell| &mut cell.samples);
    samples.filter(|of| of.metric == Metric::RoundTrip).for_each(|of| of.value *= 1.5);
    let found = compared(&file, &slower, 5.0);
    let place = || LoadedPlace { node: NodeId(0), from: None, writes_percent: 0.0 };
    let units: Vec<(MachineFigure, &str)> =
        found.pairs.iter().map(|pair| (pair.what.clone(), pair.what.unit())).collect();
    let (from, to) = (NodeId(0), NodeId(1));
    let expected = [
        (MachineFigure::Latency { access: Access::Load, from, to }, "ns"),
        (MachineFigure::LineWithinGroup, "ns"),
        (MachineFigure::LineBetweenNodes(0, 0), "ns"),
        (MachineFigure::LineBetweenNodes(0, 1), "ns"),
        (MachineFigure::LineBetweenNodes(1, 0), "ns"),
        (MachineFigure::LineBetweenNodes(1, 1), "ns"),
        (MachineFigure::Peak(place()), "GB/s"),
        (MachineFigure::LatencyAtPeak(place()), "ns"),
    ];
    assert_eq!(units, expected);
    let worse: Vec<&MachineFigure> = found.worse().map(|pair| &pair.what).collect();
    assert_eq!(worse.len(), 5, "{worse:?}");
    assert!(compared(&file, &slower, 51.0).worse().next().is_none());
}

#[test]
fn sizes_and_entries_are_off_either_way_and_bandwidths_by_loss_alone() {
    let pair = |what, percent| FigurePair { what, file: None, result: None, percent };
    let is_worse = |what: MachineFigure, percent| pair(what, percent).is_worse(10.0);
    let size = || MachineFigure::CacheSize(2);
    let entries = || MachineFigure::TlbEntries { level: 1, page_bytes: vec![4096] };
    let peak =
        || MachineFigure::Peak(LoadedPlace { node: NodeId(0), from: None, writes_percent: 0.0 });
    assert!(is_worse(size(), Some(-11.0)) && is_worse(entries(), Some(11.0)));
    assert!(is_worse(peak(), Some(-11.0)) && !is_worse(peak(), Some(50.0)));
    assert!(is_worse(MachineFigure::CacheHit(1), Some(11.0)));
    assert!(!is_worse(MachineFigure::CacheHit(1), Some(10.0)), "the margin itself is within");
    assert!(!is_worse(size(), None));
    assert_eq!((size().unit(), entries().unit(), peak().unit()), ("KiB", "entries", "GB/s"));
}
