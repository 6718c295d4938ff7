//! Doubts about a run: each rule just within its limit and just beyond.

use numalab_page::Style;
use numalab_record::{AccessPattern, CellResult, Document, LatencyCell, Metric, Outcome, Pages};
use numalab_results::Report;
use numalab_results::run::{Oddity, RunFinding, Summary, Target};
use numalab_topology::{Cache, CacheKind, Cpu, CpuId, CpuSet, Distances, NodeId};

use crate::run_lab::{
    bandwidth, c2c, chase, core, document, failed, id, latency, stream, with_fact, worker,
};

fn findings(document: &Document) -> Vec<RunFinding> {
    Summary::of(document).findings
}

fn whats(document: &Document) -> Vec<Oddity> {
    findings(document).into_iter().map(|finding| finding.what).collect()
}

/// Returns latencies from both nodes' cpus to both nodes' memory, in ns.
fn matrix(local: [f64; 2], remote: [f64; 2]) -> Vec<CellResult> {
    vec![
        latency(chase(0, 0), local[0]),
        latency(chase(0, 1), remote[0]),
        latency(chase(2, 0), remote[1]),
        latency(chase(2, 1), local[1]),
    ]
}

#[test]
fn a_run_in_which_all_is_as_it_should_be_has_no_findings() {
    assert_eq!(whats(&document(matrix([100.0; 2], [200.0; 2]))), []);
    assert_eq!(whats(&document(Vec::new())), []);
}

#[test]
fn workers_that_were_not_pinned_or_had_pages_elsewhere_are_misplaced() {
    let mut cells = matrix([100.0; 2], [200.0; 2]);
    cells[0].placements[0].affinity = CpuSet::from_iter([CpuId(0), CpuId(1)]);
    cells[1].placements[0].pages_per_node.insert(NodeId(0), 1);
    cells[2].placements[0].pages_per_node.insert(NodeId(1), 0);
    let misplaced = Oddity::Misplaced { workers: 4, misplaced: 1, pinned: 3, on_node: 3 };
    assert_eq!(whats(&document(cells)), [misplaced], "no pages on another node are none");
}

#[test]
fn cells_with_workers_and_without_proof_are_unproven() {
    let mut cells = matrix([100.0; 2], [200.0; 2]);
    cells[3].placements.clear();
    cells.push(core(0, 3.0));
    cells[4].placements.clear();
    assert_eq!(whats(&document(cells)), [Oddity::Unproven { cells: 1 }], "a core has no memory");
}

#[test]
fn failed_and_unmeasured_cells_are_counted_apart_with_the_first_reason() {
    let mut cells = matrix([100.0; 2], [200.0; 2]);
    cells[1] = failed(cells[1].clone(), "no memory");
    cells[2] = failed(cells[2].clone(), "killed");
    cells[3].ended = None;
    let [first, second, third] = [1, 2, 3].map(|at: usize| id(&cells[at]));
    let found = findings(&document(cells));
    let [failed, unmeasured] = &found[..] else { panic!("{found:?}") };
    assert_eq!(failed.what, Oddity::Failed { planned: 4, reason: "no memory".to_owned() });
    assert_eq!(failed.evidence, [first, second]);
    assert_eq!(
        (&unmeasured.what, &unmeasured.evidence[..]),
        (&Oddity::Unmeasured { planned: 4 }, &[third][..])
    );
}

#[test]
fn a_node_that_is_nearer_by_distance_and_slower_is_out_of_order() {
    let mut of = document(matrix([100.0; 2], [200.0; 2]));
    of.run.machine.distances = Distances::from_rows(&[vec![10, 20], vec![20, 10]]).unwrap();
    assert_eq!(whats(&of), []);
    let turned = |local: f64| {
        let mut of = document(matrix([local, 100.0], [100.0, 200.0]));
        of.run.machine.distances = Distances::from_rows(&[vec![10, 11], vec![20, 10]]).unwrap();
        findings(&of)
    };
    let found = turned(107.0);
    let order = found.iter().find(|of| matches!(of.what, Oddity::DistanceOrder { .. })).unwrap();
    let target = |node, distance, latency_ns| Target { node: NodeId(node), distance, latency_ns };
    let expected = Oddity::DistanceOrder {
        from: NodeId(0),
        near: target(0, 10, 107.0),
        far: target(1, 11, 100.0),
        pairs: 1,
    };
    assert_eq!((&order.what, order.threshold), (&expected, Some(1.05)));
    assert_eq!(order.evidence, [id(&latency(chase(0, 0), 1.0)), id(&latency(chase(0, 1), 1.0))]);
    let found = turned(104.0);
    assert!(!found.iter().any(|of| matches!(of.what, Oddity::DistanceOrder { .. })), "{found:?}");
}

#[test]
fn a_distance_that_promises_another_ratio_by_a_quarter_is_named_with_both() {
    // A distance of 20 over 10 implies a ratio of two.
    let ratio_of = |remote: f64| {
        let found = findings(&document(matrix([100.0; 2], [200.0, remote])));
        found.into_iter().find_map(|of| match of.what {
            Oddity::DistanceRatio { from, to, promised, measured } => {
                Some((from.0, to.0, promised, measured, of.threshold))
            }
            _ => None,
        })
    };
    assert_eq!(ratio_of(260.0), Some((1, 0, 2.0, 2.6, Some(1.25))));
    assert_eq!(ratio_of(249.0), None);
    assert_eq!(ratio_of(150.0), Some((1, 0, 2.0, 1.5, Some(1.25))), "less is off too");
    assert_eq!(ratio_of(161.0), None);
}

#[test]
fn distances_promise_nothing_of_memory_that_caches_may_hold() {
    let mut of = document(matrix([20.0; 2], [20.0; 2]));
    let is_ratio = |of: &RunFinding| matches!(of.what, Oddity::DistanceRatio { .. });
    assert!(findings(&of).iter().any(is_ratio));
    of.run.machine.caches.push(Cache {
        level: 3,
        kind: CacheKind::Unified,
        size_bytes: Some(1 << 40),
        line_bytes: None,
        ways: None,
        cpus: CpuSet::new(),
    });
    assert!(!findings(&of).iter().any(is_ratio));
}

#[test]
fn a_node_is_slow_beyond_a_tenth_with_its_own_memory_by_latency_or_else_by_bandwidth() {
    let slow = |local: [f64; 2]| {
        let found = findings(&document(matrix(local, [200.0; 2])));
        found.into_iter().find(|of| matches!(of.what, Oddity::SlowNode { .. }))
    };
    assert_eq!(slow([100.0, 110.0]), None);
    let found = slow([100.0, 111.0]).expect("beyond a tenth");
    let (node, metric) = (NodeId(1), Metric::Latency);
    let expected = Oddity::SlowNode { node, metric, value: 111.0, peers: 100.0 };
    assert_eq!((found.what, found.threshold), (expected, Some(1.10)));
    let streams = |gb: [f64; 2]| {
        let of = |node: u32| bandwidth(stream(vec![worker(2 * node, node)]), gb[node as usize]);
        whats(&document(vec![of(0), of(1)]))
    };
    let (node, metric) = (NodeId(0), Metric::Bandwidth);
    let slow = Oddity::SlowNode { node, metric, value: 8.0, peers: 10.0 };
    assert_eq!(streams([8.0, 10.0]), [slow]);
    assert_eq!(streams([9.2, 10.0]), []);
}

#[test]
fn huge_pages_are_missing_where_less_than_nine_tenths_of_a_buffer_has_them() {
    let with = |huge_mib: u64, base_mib: u64| {
        let huge = |cpu| {
            let of = chase(cpu, 0);
            let mut cell = latency(LatencyCell { pages: Pages::HUGE_2M, ..of }, 100.0);
            cell.placements[0].bytes_per_page_size =
                [(2 << 20, huge_mib << 20), (4096, base_mib << 20)].into();
            cell
        };
        let mut cells = vec![huge(0), huge(1)];
        cells[1].placements[0].bytes_per_page_size = [(1 << 30, 1 << 30)].into();
        whats(&document(cells))
    };
    assert_eq!(with(90, 10), []);
    assert_eq!(with(89, 11), [Oddity::HugePagesMissing { asked: 2, missing: 1 }]);
}

#[test]
fn a_buffer_smaller_than_a_huge_page_cannot_have_one() {
    let size_bytes = (2 << 20) - 4096;
    let small = LatencyCell { pages: Pages::Transparent, size_bytes, ..chase(0, 0) };
    let mut cell = latency(small, 10.0);
    cell.placements[0].bytes_per_page_size = [(4096, size_bytes)].into();
    assert_eq!(whats(&document(vec![cell])), []);
}

#[test]
fn facts_about_the_clock_the_modules_and_the_cpu_time_are_findings() {
    let quiet = || document(Vec::new());
    assert_eq!(whats(&with_fact(quiet(), "clock_invariant", "no")), [Oddity::ClockNotInvariant]);
    assert_eq!(whats(&with_fact(quiet(), "clock_invariant", "yes")), []);
    let usable = quiet().run.machine.usable_cpus().len();
    let quota = Oddity::CpuQuota { cpus: 0.5, usable, windows: 0, disturbed: 0 };
    assert_eq!(whats(&with_fact(quiet(), "cpu_quota", "0.5")), [quota]);
    assert_eq!(whats(&with_fact(quiet(), "cpu_quota", &usable.to_string())), []);
    let time = "virtual, by instructions".to_owned();
    assert_eq!(whats(&with_fact(quiet(), "time", &time)), [Oddity::EmulatedTime { time }]);
    let (channels, modules) = ("P0 C, P0 D".to_owned(), "DIMM A1 at 2666 of 3200".to_owned());
    let both = with_fact(quiet(), "memory_channels_empty", &channels);
    let both = with_fact(both, "memory_modules_slow", &modules);
    assert_eq!(whats(&both), [Oddity::ChannelsEmpty { channels }, Oddity::ModulesSlow { modules }]);
}

#[test]
fn windows_are_disturbed_beyond_a_twentieth_of_all() {
    let with = |cells: usize| {
        let mut of: Vec<CellResult> = (0..20).map(|_| latency(chase(0, 0), 100.0)).collect();
        // One of three windows in each cell.
        of[..cells]
            .iter_mut()
            .for_each(|cell| cell.samples[0].disturbed = Some("steal".to_owned()));
        findings(&document(of))
    };
    assert_eq!(with(3), [], "3 of 60");
    let found = with(4);
    let expected = Oddity::Disturbed { windows: 60, disturbed: 4 };
    assert_eq!((&found[0].what, found[0].threshold), (&expected, Some(0.05)));
}

#[test]
fn windows_that_a_limit_of_cpu_time_disturbs_are_one_finding_with_it() {
    let mut cells = matrix([100.0; 2], [200.0; 2]);
    cells.iter_mut().for_each(|cell| cell.samples[0].disturbed = Some("steal".to_owned()));
    let limited = with_fact(document(cells), "cpu_quota", "0.5");
    let usable = limited.run.machine.usable_cpus().len();
    let expected = Oddity::CpuQuota { cpus: 0.5, usable, windows: 12, disturbed: 4 };
    assert_eq!(whats(&limited), [expected]);
}

#[test]
fn cells_that_spent_their_budget_are_not_precise() {
    let mut cells = matrix([100.0; 2], [200.0; 2]);
    cells[2].ended = Some(Outcome::BudgetSpent);
    let wide = id(&cells[2]);
    let found = findings(&document(cells));
    let expected = Oddity::NotPrecise { planned: 4, precision: 0.01 };
    assert_eq!((&found[0].what, found[0].threshold), (&expected, Some(0.01)));
    assert_eq!((found.len(), &found[0].evidence[..]), (1, &[wide][..]));
}

/// Returns a guest of one node and six cpus, in two groups of three that are far from each other.
fn spread_guest(package: impl Fn(u32) -> u32, l3_group: impl Fn(u32) -> u32) -> Document {
    let pairs = (0..6).flat_map(|from| (from + 1..6).map(move |to| (from, to)));
    let time = |(from, to)| c2c(from, to, 0, if from / 3 == to / 3 { 100.0 } else { 150.0 });
    let mut guest = with_fact(document(pairs.map(time).collect()), "hypervisor", "kvm");
    let machine = &mut guest.run.machine;
    let cpu = |id: u32| Cpu {
        id: CpuId(id),
        online: true,
        node: Some(NodeId(0)),
        package: Some(package(id)),
        core: Some(id),
        l3_group: Some(l3_group(id)),
        ..Cpu::default()
    };
    machine.cpus = (0..6).map(cpu).collect();
    machine.nodes.truncate(1);
    machine.nodes[0].cpus = (0..6).map(CpuId).collect();
    machine.distances = Distances::uniform(1, 20);
    guest
}

#[test]
fn groups_of_cpus_in_a_guest_of_one_node_are_a_host_s_nodes_unless_they_are_caches_of_a_package() {
    let found = |guest: &Document| {
        whats(guest).into_iter().find_map(|what| match what {
            Oddity::HiddenNodes { cpus, .. } => Some(cpus),
            _ => None,
        })
    };
    let groups = Some("0-2 | 3-5".to_owned());
    assert_eq!(
        found(&spread_guest(|_| 0, |_| 0)),
        groups,
        "nothing that the guest sees explains it"
    );
    assert_eq!(found(&spread_guest(|_| 0, |cpu| cpu / 3)), None, "two caches of one package");
    assert_eq!(found(&spread_guest(|cpu| cpu / 3, |cpu| cpu / 3)), groups, "two packages");
    let mut host = spread_guest(|_| 0, |_| 0);
    host.run.environment.facts.remove("hypervisor");
    assert_eq!(found(&host), None);
}

/// Returns a guest of two cpus that share an L3 of 14 ns, in which the round trip of a line between
/// them takes the given time.
fn guest_with_cache(round_trip_ns: f64) -> Document {
    let sizes = (12..=28).flat_map(|exponent: u32| [1_u64 << exponent, 3 << (exponent - 1)]);
    let walk = |size_bytes: u64| {
        let ns = match size_bytes {
            ..=0x8000 => 1.0,
            0x8001..=0x10_0000 => 3.5,
            0x10_0001..=0x200_0000 => 14.0,
            _ => 110.0,
        };
        latency(LatencyCell { size_bytes, pattern: AccessPattern::PageLocal, ..chase(0, 0) }, ns)
    };
    let mut cells: Vec<CellResult> = sizes.map(walk).collect();
    cells.push(c2c(0, 1, 0, round_trip_ns));
    let mut guest = with_fact(document(cells), "hypervisor", "kvm");
    let cache = |(level, kind, size_bytes)| Cache {
        level,
        kind,
        size_bytes: Some(size_bytes),
        line_bytes: Some(64),
        ways: None,
        cpus: (0..2).map(CpuId).collect(),
    };
    let machine = &mut guest.run.machine;
    let unified = CacheKind::Unified;
    let sizes = [(1, CacheKind::Data, 1 << 15), (2, unified, 1 << 20), (3, unified, 1 << 25)];
    machine.caches = sizes.map(cache).into();
    for cpu in &mut machine.cpus {
        cpu.l3_group = cpu.node.map(|node| node.0);
    }
    guest
}

/// Two cpus of a virtual machine were 163 to 330 ns apart although they nominally shared an L3.
#[test]
fn cpus_that_share_a_cache_in_name_only_are_named_with_both_times() {
    let found = |round_trip_ns: f64| {
        let found = findings(&guest_with_cache(round_trip_ns));
        found.into_iter().find(|of| matches!(of.what, Oddity::SharedCacheFar { .. }))
    };
    assert_eq!(found(2.0 * 7.9 * 14.0), None, "as far as a mesh may be");
    let far = found(2.0 * 163.0).expect("a line takes eleven times the cache's latency");
    let Oddity::SharedCacheFar { pairs: 1, one_way_ns, cache_ns, is_guest: true } = far.what else {
        panic!("{far:?}")
    };
    assert!((one_way_ns - 163.0).abs() < 0.5 && (cache_ns - 14.0).abs() < 0.1, "{far:?}");
    assert_eq!(far.evidence, [id(&c2c(0, 1, 0, 1.0))]);
    let text = Summary::of(&guest_with_cache(326.0)).page().terminal(Style::Plain);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("seem not to: a line takes 163 ns one way (median of 1 pair)"), "{text}");
    assert!(text.contains("and the cache 14.0 ns; the hypervisor may have"), "{text}");
}
