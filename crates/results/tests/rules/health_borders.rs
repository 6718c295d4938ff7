//! A health check at its limits, and its words about missing parts.

use numalab_record::CellResult;
use numalab_record::self_test::{CheckFound, CheckOutcome, NodeLatency, PutBack};
use numalab_results::compare::NamedRun;
use numalab_results::fleet::{Family, Scope};
use numalab_results::health::{
    Health, HealthFinding, Limits, Severity, Suspicion, Symptom, health,
};
use numalab_results::self_test::{inversions, judge, pairs};
use numalab_topology::{CpuId, CpuSet, Machine, NodeId};

use crate::run_lab::{bandwidth, c2c, chase, core, document, id, latency, machine, stream, worker};

const LIMITS: Limits = Limits { degraded_percent: 10.0, failing_percent: 20.0 };
const NOISE: [f64; 5] = [0.999, 0.9995, 1.0, 1.0005, 1.001];

/// Returns a clock, a latency and a bandwidth of each node, and one of both nodes.
fn cells(noise: f64) -> Vec<CellResult> {
    vec![
        core(0, 3.0 * noise),
        latency(chase(0, 0), 100.0 * noise),
        latency(chase(2, 1), 100.0 * noise),
        bandwidth(stream(vec![worker(0, 0)]), 10.0 * noise),
        bandwidth(stream(vec![worker(2, 1)]), 10.0 * noise),
        bandwidth(stream(vec![worker(0, 0), worker(2, 1)]), 20.0 * noise),
        c2c(0, 1, 0, 50.0 * noise),
    ]
}

fn run(cells: Vec<CellResult>) -> NamedRun {
    NamedRun { name: "run".to_owned(), document: document(cells) }
}

fn baseline() -> Vec<NamedRun> {
    let begun = |(hour, noise): (u64, &f64)| {
        let mut run = run(cells(*noise));
        run.document.run.started_unix_ms = hour * 3_600_000;
        run
    };
    (0..).zip(&NOISE).map(begun).collect()
}

fn scaled(mut cells: Vec<CellResult>, at: usize, factor: f64) -> Vec<CellResult> {
    cells[at].samples.iter_mut().for_each(|sample| sample.value *= factor);
    cells
}

fn found(at: usize, factor: f64) -> Health {
    health(&baseline(), &[run(scaled(cells(1.0), at, factor))], LIMITS)
}

fn slower(of: &HealthFinding) -> (&Scope, Family, f64, Option<Suspicion>) {
    match &of.symptom {
        Symptom::Slower { scope, family, change_percent, suspicion } => {
            (scope, *family, change_percent.round(), *suspicion)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn limits_decide_between_healthy_degraded_and_failing() {
    for (factor, severity) in [
        (1.09, Severity::Healthy),
        (1.11, Severity::Degraded),
        (1.19, Severity::Degraded),
        (1.21, Severity::Failing),
        (0.5, Severity::Healthy),
    ] {
        assert_eq!(found(2, factor).severity, severity, "{factor}");
    }
}

#[test]
fn a_core_that_clocks_lower_is_limited_and_belongs_to_the_host() {
    let health = found(0, 0.85);
    let [finding] = &health.findings[..] else { panic!("{:?}", health.findings) };
    let limited = Some(Suspicion::ClockLimited);
    assert_eq!(slower(finding), (&Scope::Host, Family::Core, -15.0, limited));
    assert_eq!(health.suspected.iter().collect::<Vec<_>>(), [&id(&core(0, 1.0))]);
    assert_eq!(found(0, 1.2).severity, Severity::Healthy, "a faster clock is none");
}

#[test]
fn bandwidth_of_both_nodes_is_the_hosts_and_core_to_core_is_not_asked() {
    let health = found(5, 0.7);
    let channel = Some(Suspicion::ChannelSlow);
    assert_eq!(slower(&health.findings[0]), (&Scope::Host, Family::Bandwidth, -30.0, channel));
    assert_eq!(found(6, 3.0).severity, Severity::Healthy);
    assert!(health.figures.iter().all(|figure| figure.family != Family::CoreToCore));
    assert_eq!(health.figures.len(), 6);
}

#[test]
fn latency_alone_has_no_suspicion_and_the_worst_comes_first() {
    let health = found(1, 1.15);
    let memory = Family::MemoryLatency;
    assert_eq!(slower(&health.findings[0]), (&Scope::MemoryNode(0), memory, 15.0, None));
    let two = scaled(scaled(cells(1.0), 1, 1.12), 2, 1.18);
    let health = self::health(&baseline(), &[run(two)], LIMITS);
    let order: Vec<&Scope> = health.findings.iter().map(|of| slower(of).0).collect();
    assert_eq!(order, [&Scope::MemoryNode(1), &Scope::MemoryNode(0)]);
    let three = scaled(scaled(cells(1.0), 1, 1.19), 4, 0.75);
    let health = self::health(&baseline(), &[run(three)], LIMITS);
    let severities: Vec<Severity> = health.findings.iter().map(|of| of.severity).collect();
    assert_eq!(severities, [Severity::Failing, Severity::Degraded]);
}

#[test]
fn a_figure_that_a_run_of_the_baseline_lacks_is_named_and_not_judged() {
    let mut baseline = baseline();
    baseline[3].document.cells.remove(1);
    let slow = scaled(cells(1.0), 1, 1.5);
    let health = health(&baseline, &[run(slow)], LIMITS);
    let (scope, family) = (Scope::MemoryNode(0), Family::MemoryLatency);
    let expected = Symptom::NotInBaseline { scope, family, runs: baseline.len() - 1 };
    let [finding] = &health.findings[..] else { panic!("{:?}", health.findings) };
    assert_eq!((finding.severity, &finding.symptom), (Severity::Disturbed, &expected));
    assert_eq!(health.figures.len(), 5);
}

#[test]
fn three_percent_of_a_nodes_memory_is_the_kernels_and_cpus_are_counted() {
    let with = |change: fn(&mut Machine)| {
        let mut now = run(cells(1.0));
        change(&mut now.document.run.machine);
        let health = health(&baseline(), &[now], LIMITS);
        health.findings.into_iter().map(|finding| finding.symptom).collect::<Vec<_>>()
    };
    assert_eq!(with(|of| of.nodes[1].memory_bytes -= (1 << 34) / 40), [], "2.5 %");
    let less = with(|of| of.nodes[1].memory_bytes -= (1 << 34) / 32);
    let (node, baseline_bytes) = (NodeId(1), 1 << 34);
    let bytes = (1 << 34) - (1 << 34) / 32;
    assert_eq!(less, [Symptom::MemoryMissing { node, bytes, baseline_bytes }]);
    let gone = with(|of| {
        of.nodes.truncate(1);
        of.cpus[3].online = false;
        of.cpus.remove(2);
    });
    let cpus = CpuSet::from_iter([CpuId(2), CpuId(3)]);
    assert_eq!(
        gone,
        [Symptom::NodeMissing { node, baseline_bytes }, Symptom::CpusMissing { cpus }]
    );
    assert_eq!(with(|of| of.nodes[0].memory_bytes *= 2), [], "more is not missing");
}

#[test]
fn a_check_without_runs_on_a_side_finds_nothing() {
    let health = health(&[], &[run(cells(1.0))], LIMITS);
    assert_eq!((health.severity, health.findings.len()), (Severity::Healthy, 0));
    let none = self::health(&baseline(), &[], LIMITS);
    assert_eq!((none.figures.len(), none.baseline.len()), (0, 5));
}

fn judged(found: CheckFound) -> CheckOutcome {
    judge(&found, &machine())
}

#[test]
fn pins_are_right_only_if_there_are_some_and_all_are_right() {
    let cpus = |list: &str| -> CpuSet { list.parse().unwrap() };
    let pins = |right: &str, wrong: &str| {
        let wrong = if wrong.is_empty() { CpuSet::new() } else { cpus(wrong) };
        let right = if right.is_empty() { CpuSet::new() } else { cpus(right) };
        judged(CheckFound::Pins { right, wrong })
    };
    assert_eq!(pins("0-3", ""), CheckOutcome::Passed);
    assert_eq!(pins("0-2", "3"), CheckOutcome::Failed);
    assert_eq!(pins("", ""), CheckOutcome::Failed, "a check that tried nothing shows nothing");
}

#[test]
fn a_setting_that_is_not_as_before_fails() {
    let with = |after: &str| {
        let setting = |name: &str, after: &str| PutBack {
            name: name.to_owned(),
            before: "1".to_owned(),
            after: after.to_owned(),
        };
        judged(CheckFound::Settings { settings: vec![setting("a", "1"), setting("b", after)] })
    };
    assert_eq!((with("1"), with("0")), (CheckOutcome::Passed, CheckOutcome::Failed));
}

#[test]
fn balancing_passes_at_its_borders() {
    let found = |off_percent, on_percent| {
        judged(CheckFound::Balancing {
            from: NodeId(0),
            to: NodeId(1),
            off_percent,
            on_percent,
            begin_ns: 200.0,
            end_ns: 100.0,
        })
    };
    assert_eq!(found(5.0, 50.0), CheckOutcome::Passed);
    assert_eq!(found(5.1, 50.0), CheckOutcome::Failed);
    assert_eq!(found(5.0, 49.9), CheckOutcome::Failed);
}

#[test]
fn pairs_of_a_matrix_have_the_machines_distances_and_only_the_same_cpus_are_compared() {
    let of = document(vec![
        latency(chase(0, 0), 100.0),
        latency(chase(0, 1), 90.0),
        latency(chase(2, 1), 300.0),
    ]);
    let summary = numalab_results::run::Summary::of(&of);
    let found = pairs(&summary.matrices[0].by_node, &of.run.machine);
    let pair = |from, to, latency_ns, distance| NodeLatency {
        from: NodeId(from),
        to: NodeId(to),
        latency_ns,
        distance: Some(distance),
    };
    let expected = [pair(0, 0, 100.0, 10), pair(0, 1, 90.0, 20), pair(1, 1, 300.0, 10)];
    assert_eq!(found, expected);
    assert_eq!(inversions(&found), [(expected[0], expected[1])]);
    let unknown: Vec<NodeLatency> =
        found.iter().map(|of| NodeLatency { distance: None, ..*of }).collect();
    assert_eq!(inversions(&unknown), []);
}
