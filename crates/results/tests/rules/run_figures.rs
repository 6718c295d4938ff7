//! Figures of runs: progress, cores, matrices, remote cost, bandwidths, cores' distance, proofs.

use numalab_record::{
    AccessPattern, BandwidthCell, CellResult, Document, IsaName, LatencyCell, Metric, Outcome,
    Pages, StreamKernel, Team,
};
use numalab_results::run::{
    Axis, Home, MemoryPeak, Nearness, Progress, Remote, RemotePair, Summary,
};
use numalab_stats::Interval;
use numalab_topology::{Cache, CacheKind, CpuId, CpuSet, NodeId};

use crate::run_lab::{
    MIB, bandwidth, c2c, chase, core, document, failed, latency, stream, with_fact, worker,
};

#[test]
fn progress_counts_cells_by_how_they_ended_and_windows_with_a_value() {
    let mut cells: Vec<CellResult> = (0..4).map(|_| latency(chase(0, 0), 100.0)).collect();
    cells[1].ended = Some(Outcome::BudgetSpent);
    cells[1].samples[0].disturbed = Some("steal".to_owned());
    cells[2] = failed(cells[2].clone(), "no");
    cells[2].samples.clear();
    cells[3].ended = None;
    cells[3].samples[2].value = f64::NAN;
    let of = document(cells);
    let progress = Summary::of(&of).progress;
    let expected = Progress {
        planned: 4,
        precise: 1,
        budget_spent: 1,
        failed: 1,
        unmeasured: 1,
        windows: 8,
        disturbed: 1,
    };
    assert_eq!((progress, progress.disturbed_share()), (expected, 0.125));
    assert_eq!(Progress::default().disturbed_share(), 0.0);
}

#[test]
fn cells_that_failed_or_did_not_end_have_no_figure() {
    let mut cells = vec![latency(chase(0, 0), 100.0), latency(chase(0, 1), 200.0)];
    cells[0] = failed(cells[0].clone(), "misplaced");
    cells[1].ended = None;
    let of = document(cells);
    let summary = Summary::of(&of);
    assert!(summary.cells.iter().all(|cell| cell.figure(Metric::Latency).is_none()));
    assert!(summary.cells.iter().all(|cell| cell.figures[0].windows == 3), "they keep them");
}

#[test]
fn disturbed_windows_count_only_where_clean_ones_are_too_few() {
    let figure = |clean: &[f64], disturbed: &[f64]| {
        let mut cell = latency(chase(0, 0), 0.0);
        let first = cell.samples[0].clone();
        let sample = |value: &f64, why: Option<&str>| numalab_record::Sample {
            value: *value,
            disturbed: why.map(str::to_owned),
            ..first.clone()
        };
        cell.samples = clean.iter().map(|value| sample(value, None)).collect();
        cell.samples.extend(disturbed.iter().map(|value| sample(value, Some("steal"))));
        let of = document(vec![cell]);
        let summary = Summary::of(&of);
        let share = summary.cells[0].disturbed_share(Metric::Latency);
        (summary.cells[0].figure(Metric::Latency).map(|figure| figure.median), share)
    };
    assert_eq!(figure(&[1.0], &[9.0, 9.0, 9.0]), (Some(1.0), 0.75));
    assert_eq!(figure(&[1.0], &[9.0, 9.0, 9.0, 9.0]), (Some(9.0), 0.8));
    assert_eq!(figure(&[1.0; 6], &[9.0; 30]).0, Some(1.0), "six clean ones are enough");
    assert_eq!(figure(&[], &[9.0]).0, Some(9.0));
}

#[test]
fn a_core_has_its_clock_and_the_sweep_corrects_one_that_contradicts_the_l1() {
    let mut of = core(0, 3.0);
    let load_to_use = of.samples.iter().map(|sample| numalab_record::Sample {
        metric: Metric::LoadToUse,
        value: 4.02,
        ..sample.clone()
    });
    let load_to_use: Vec<_> = load_to_use.collect();
    of.samples.extend(load_to_use);
    let sweep = |ns: f64| -> Vec<CellResult> {
        let at = |kib: u64| {
            let ns = if kib <= 32 { ns } else { 20.0 * ns };
            let cell = LatencyCell { size_bytes: kib << 10, ..chase(0, 0) };
            latency(cell, ns)
        };
        [4, 8, 16, 32, 64, 128, 256, 512, 1024].map(at).to_vec()
    };
    let clock = |ns| {
        let mut of = document([vec![of.clone()], sweep(ns)].concat());
        of.run.machine.caches = vec![l1()];
        let summary = Summary::of(&of);
        assert_eq!(summary.clock_ghz(CpuId(0)), Some(3.0));
        assert_eq!(summary.clock_ghz(CpuId(1)), None);
        summary.cycle_clock_ghz(CpuId(0)).unwrap()
    };
    assert_eq!(clock(4.0 / 3.0), 3.0, "four cycles at 3 GHz");
    assert_eq!(clock(4.0 / 3.05), 3.0, "within 2 %");
    assert!((clock(1.0) - 4.0).abs() < 1e-6, "the sweep ran at 4 GHz");
}

fn l1() -> Cache {
    Cache {
        level: 1,
        kind: CacheKind::Data,
        size_bytes: Some(32 << 10),
        line_bytes: Some(64),
        ways: Some(8),
        cpus: CpuSet::from_iter([CpuId(0)]),
    }
}

#[test]
fn a_machine_is_called_by_its_host_or_its_processor() {
    let name = |of: &Document| Summary::of(of).machine_name().to_owned();
    let of = document(Vec::new());
    assert_eq!(name(&of), "this machine");
    let of = with_fact(of, "cpu_model", "EPYC");
    assert_eq!(name(&of), "EPYC");
    assert_eq!(name(&with_fact(of, "hostname", "n01")), "n01");
}

#[test]
fn the_matrix_is_of_the_chase_with_the_most_workers_and_of_equals_the_largest() {
    let of =
        |cpu, node, size_bytes, ns| latency(LatencyCell { size_bytes, ..chase(cpu, node) }, ns);
    let cells = vec![
        of(0, 0, MIB, 10.0),
        of(0, 1, MIB, 20.0),
        of(0, 0, 2 * MIB, 100.0),
        of(1, 0, 2 * MIB, 110.0),
        of(2, 0, 4 * MIB, 999.0),
        of(2, 1, 2 * MIB, 90.0),
    ];
    let of = document(cells);
    let summary = Summary::of(&of);
    let [matrix] = &summary.matrices[..] else { panic!("{:?}", summary.matrices) };
    assert_eq!((matrix.size_bytes, matrix.team), (2 * MIB, Team::Serial));
    let by_cpu = &matrix.by_cpu;
    assert_eq!(
        (by_cpu.rows_are, &by_cpu.rows[..], &by_cpu.columns[..]),
        (Axis::Cpu, &[0, 1, 2][..], &[0, 1][..])
    );
    assert_eq!(by_cpu.get(0, 1), None, "it was not measured at this size");
    let joined = matrix.by_node.get(0, 0).unwrap();
    assert_eq!((joined.value, joined.spread), (105.0, Some(Interval { lo: 100.0, hi: 110.0 })));
    assert_eq!(joined.cells.len(), 2);
    assert_eq!(matrix.by_node.range(), Some(Interval { lo: 90.0, hi: 105.0 }));
    assert!(!matrix.by_node.is_trivial());
}

#[test]
fn one_worker_makes_no_matrix_and_teams_have_one_each() {
    let one = document(vec![latency(chase(0, 0), 100.0)]);
    assert!(Summary::of(&one).matrices.is_empty());
    let both =
        |team| [0, 1].map(|node| latency(LatencyCell { team, ..chase(0, node) }, 100.0)).to_vec();
    let of = document([both(Team::Concurrent), both(Team::Serial)].concat());
    let teams: Vec<Team> = Summary::of(&of).matrices.iter().map(|matrix| matrix.team).collect();
    assert_eq!(teams, [Team::Serial, Team::Concurrent]);
}

#[test]
fn remote_cost_is_by_the_cpus_own_node_or_the_usual_one_where_that_has_no_memory() {
    let cells =
        vec![latency(chase(0, 0), 100.0), latency(chase(0, 1), 150.0), latency(chase(2, 0), 180.0)];
    let of = document(cells);
    let summary = Summary::of(&of);
    let Remote::Measured(cost) = &summary.remote else { panic!("{:?}", summary.remote) };
    let pair = |from, to, latency_ns, ratio| RemotePair {
        from: NodeId(from),
        to: NodeId(to),
        latency_ns,
        ratio,
        distance: Some(20),
    };
    let (cheapest, dearest) = (pair(0, 1, 150.0, 1.5), pair(1, 0, 180.0, 1.8));
    assert_eq!((cost.local_ns, &cost.pairs[..]), (100.0, &[cheapest, dearest][..]));
    assert_eq!(cost.extremes(), Some((&cheapest, &dearest)));
    let mut alone = document(Vec::new());
    assert_eq!(Summary::of(&alone).remote, Remote::NotMeasured);
    alone.run.machine.nodes.truncate(1);
    assert_eq!(Summary::of(&alone).remote, Remote::OneNode);
}

#[test]
fn local_bandwidth_has_one_row_for_each_kernel_and_order_sequential_ones_first() {
    let with = |kernel, pattern, workers| BandwidthCell { kernel, pattern, ..stream(workers) };
    let (sequential, random) = (AccessPattern::Sequential, AccessPattern::Random);
    let own = || vec![worker(0, 0)];
    let cells = vec![
        bandwidth(with(StreamKernel::Read, random, own()), 3.0),
        bandwidth(with(StreamKernel::Write, sequential, own()), 8.0),
        bandwidth(with(StreamKernel::Read, sequential, own()), 10.0),
        bandwidth(with(StreamKernel::Read, sequential, vec![worker(1, 0)]), 11.0),
        bandwidth(with(StreamKernel::Read, sequential, vec![worker(0, 1)]), 6.0),
        bandwidth(with(StreamKernel::Read, sequential, vec![worker(0, 0), worker(2, 1)]), 19.0),
        bandwidth(
            with(StreamKernel::Read, sequential, vec![worker(0, 1), worker(2, 1), worker(3, 1)]),
            9.0,
        ),
    ];
    let of = document(cells);
    let bandwidths = Summary::of(&of).bandwidth;
    let local: Vec<bool> = bandwidths.rows.iter().map(|row| row.is_local).collect();
    assert_eq!(local, [true, true, true, true, false, true, false]);
    assert_eq!(bandwidths.most_workers(), 2, "remote ones do not count");
    let figures = |workers| -> Vec<f64> {
        bandwidths.local_with(workers).iter().map(|row| row.figure.median).collect()
    };
    assert_eq!((figures(1), figures(2), figures(3)), (vec![10.0, 8.0, 3.0], vec![19.0], vec![]));
}

#[test]
fn a_stream_is_in_its_own_instruction_set_or_in_those_that_trials_chose() {
    let both = stream(vec![worker(0, 0), worker(1, 0)]);
    let fastest = BandwidthCell { isa: IsaName::fastest(), ..both.clone() };
    let mut tried = bandwidth(fastest, 20.0);
    for (placement, isa) in tried.placements.iter_mut().zip(["sse2", "avx2"]) {
        placement.isa = Some(IsaName(isa.to_owned()));
    }
    let of = document(vec![bandwidth(both, 20.0), tried]);
    let rows = Summary::of(&of).bandwidth.rows;
    let isas: Vec<Vec<&str>> = rows.iter().map(|row| row.isas.iter().copied().collect()).collect();
    assert_eq!(isas, [vec!["avx2"], vec!["avx2", "sse2"]]);
}

#[test]
fn round_trips_are_sorted_by_distance_of_the_cpus_and_node_of_the_line() {
    let mut of = document(vec![
        c2c(0, 1, 0, 40.0),
        c2c(0, 2, 0, 200.0),
        c2c(0, 2, 1, 260.0),
        c2c(1, 3, 7, 300.0),
        c2c(0, 9, 0, 500.0),
    ]);
    of.run.machine.cpus[3].l3_group = None;
    let found = Summary::of(&of).c2c;
    let near: Vec<_> =
        found.by_nearness.iter().map(|of| (of.nearness, of.pairs, of.median_ns)).collect();
    assert_eq!(near, [(Nearness::SameL3Group, 1, 40.0), (Nearness::Apart, 4, 280.0)]);
    let apart = &found.by_nearness[1];
    assert_eq!((apart.fastest_ns, apart.slowest_ns), (200.0, 500.0));
    let homes: Vec<Home> = found.by_home.iter().map(|trips| trips.home).collect();
    assert_eq!(homes, [Home::Sender, Home::Answerer, Home::Elsewhere]);
    assert_eq!(found.by_home[1].round_trips.get(0, 2).map(|entry| entry.value), Some(260.0));
}

#[test]
fn cpus_of_a_core_a_node_and_a_package_are_distinguished() {
    let mut of = document((1..4).map(|to| c2c(0, to, 0, f64::from(to))).collect());
    let cpus = &mut of.run.machine.cpus;
    cpus[1].core = Some(0);
    cpus[2].node = Some(NodeId(0));
    cpus[3].package = Some(0);
    let near: Vec<_> =
        Summary::of(&of).c2c.by_nearness.iter().map(|of| (of.nearness, of.median_ns)).collect();
    let expected =
        [(Nearness::SameCore, 1.0), (Nearness::SameNode, 2.0), (Nearness::SamePackage, 3.0)];
    assert_eq!(near, expected);
}

#[test]
fn a_walk_costs_random_minus_page_local_order_at_the_largest_common_size() {
    let at =
        |pattern, size_bytes, ns| latency(LatencyCell { pattern, size_bytes, ..chase(0, 0) }, ns);
    let (random, local) = (AccessPattern::Random, AccessPattern::PageLocal);
    let cells = vec![
        at(local, 2 * MIB, 10.0),
        at(random, 2 * MIB, 14.0),
        at(local, 8 * MIB, 80.0),
        at(random, 8 * MIB, 110.0),
        at(local, 64 * MIB, 99.0),
        latency(
            LatencyCell {
                pattern: random,
                size_bytes: 64 * MIB,
                pages: Pages::HUGE_2M,
                ..chase(0, 0)
            },
            100.0,
        ),
    ];
    let of = document(cells);
    let walks = Summary::of(&of).walks;
    let [walk] = &walks[..] else { panic!("{walks:?}") };
    assert_eq!((walk.size_bytes, walk.pages, walk.cost_ns), (8 * MIB, Pages::BASE_4K, 30.0));
}

#[test]
fn the_peak_of_the_modules_is_divided_over_nodes_without_caches() {
    let with = |cells| {
        let mut of = with_fact(document(cells), "memory_peak_mb_s", "100000");
        of.run.machine.caches = vec![Cache { size_bytes: Some(32 * MIB), ..l1() }];
        Summary::of(&of).memory_peak
    };
    let peak = |reached| Some(MemoryPeak { gb_per_s: 100.0, is_bound: false, reached });
    assert_eq!(with(Vec::new()), peak(None));
    assert_eq!(
        with(vec![bandwidth(stream(vec![worker(0, 0)]), 20.0)]),
        peak(Some(0.4)),
        "of one node"
    );
    let both = vec![worker(0, 0), worker(2, 1)];
    assert_eq!(with(vec![bandwidth(stream(both), 60.0)]), peak(Some(0.6)));
    let write = BandwidthCell { kernel: StreamKernel::Write, ..stream(vec![worker(0, 0)]) };
    assert_eq!(with(vec![bandwidth(write, 20.0)]), peak(Some(0.8)), "lines are read first");
    let cached = BandwidthCell { size_bytes: 32 * MIB, ..stream(vec![worker(0, 0)]) };
    assert_eq!(with(vec![bandwidth(cached, 400.0)]), peak(None), "the caches hold it");
    let unreadable = with_fact(document(Vec::new()), "memory_peak_mb_s", "fast");
    assert_eq!(Summary::of(&unreadable).memory_peak, None);
}
