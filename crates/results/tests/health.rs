//! Health checks of known runs.

mod measured;

use measured::{finished, run_of};
use numalab_record::{
    AccessPattern, BandwidthCell, Cell, CellId, Document, Environment, Experiment, IsaName,
    LatencyCell, Metric, Pages, StreamKernel, Team, WorkerPlan,
};
use numalab_results::compare::NamedRun;
use numalab_results::fleet::{Family, Scope};
use numalab_results::health::page::reason;
use numalab_results::health::{
    Health, Limits, Severity, Suspicion, Symptom, health, of_another_kind,
};
use numalab_topology::{Cache, CacheKind, CpuId, CpuSet, Machine, Node, NodeId};

const LIMITS: Limits = Limits { degraded_percent: 10.0, failing_percent: 20.0 };

/// Latency and bandwidth of both nodes.
type Figures = [(f64, f64); 2];

const GOOD: Figures = [(100.0, 50.0), (100.0, 50.0)];

fn machine(gib: [u64; 2]) -> Machine {
    let node = |id, gib: u64| Node { id: NodeId(id), memory_bytes: gib << 30, ..Node::default() };
    let nodes = vec![node(0, gib[0]), node(1, gib[1])];
    Machine { nodes, ..Machine::default() }
}

fn run(machine: Machine, figures: Figures, noise: f64, disturbed: bool) -> NamedRun {
    let mut cells = Vec::new();
    for (id, (latency, bandwidth)) in (0_u32..).zip(figures) {
        let worker = WorkerPlan { cpu: CpuId(id), node: NodeId(id) };
        let (size_bytes, pages) = (1 << 28, Pages::BASE_4K);
        let pattern = AccessPattern::Random;
        let chase = LatencyCell { worker, size_bytes, pattern, pages, team: Team::Serial };
        let stream = BandwidthCell {
            workers: vec![worker],
            kernel: StreamKernel::Read,
            pattern: AccessPattern::Sequential,
            size_bytes,
            pages,
            isa: IsaName("sse2".into()),
        };
        let cell = |name: &str, experiment| Cell { id: CellId(format!("{name}{id}")), experiment };
        let chase = cell("latency", Experiment::Latency(chase));
        let stream = cell("bandwidth", Experiment::Bandwidth(stream));
        cells.push(finished(chase, Metric::Latency, |_| latency * noise));
        cells.push(finished(stream, Metric::Bandwidth, |_| bandwidth / noise));
    }
    for sample in cells.iter_mut().flat_map(|cell| &mut cell.samples).filter(|_| disturbed) {
        sample.disturbed = Some("steal".into());
    }
    NamedRun { name: String::new(), document: Document { run: run_of(machine), cells } }
}

/// Returns the runs, each begun an hour after the one before.
fn hourly(runs: impl IntoIterator<Item = NamedRun>) -> Vec<NamedRun> {
    let begun = |(hour, mut run): (u64, NamedRun)| {
        run.document.run.started_unix_ms = hour * 3_600_000;
        run
    };
    (0..).zip(runs).map(begun).collect()
}

fn baseline() -> Vec<NamedRun> {
    let noise = [0.99, 1.0, 1.01, 1.005, 0.995];
    hourly(noise.map(|noise| run(machine([128, 128]), GOOD, noise, false)))
}

fn found(figures: Figures) -> Health {
    health(&baseline(), &[run(machine([128, 128]), figures, 1.0, false)], LIMITS)
}

fn slower(node: u32, family: Family, change_percent: f64, why: Suspicion) -> Symptom {
    let scope = Scope::MemoryNode(node);
    Symptom::Slower { scope, family, change_percent, suspicion: Some(why) }
}

#[test]
fn a_machine_like_its_baseline_is_healthy_and_an_improvement_is_not_a_finding() {
    for figures in [GOOD, [(104.0, 48.0), (100.0, 50.0)], [(50.0, 90.0), (60.0, 99.0)]] {
        let health = found(figures);
        assert_eq!((health.severity, health.findings.len()), (Severity::Healthy, 0), "{figures:?}");
        assert_eq!(health.figures.len(), 4);
    }
}

#[test]
fn a_slow_channel_is_distinguished_from_slow_memory_and_limits_grade_it() {
    let health = found([(100.0, 50.0), (101.0, 35.0)]);
    assert_eq!(health.severity, Severity::Failing);
    let [finding] = &health.findings[..] else { panic!("{:?}", health.findings) };
    let Symptom::Slower { scope, change_percent, suspicion, .. } = &finding.symptom else {
        panic!("{finding:?}")
    };
    assert_eq!((scope, suspicion), (&Scope::MemoryNode(1), &Some(Suspicion::ChannelSlow)));
    assert!((change_percent + 30.0).abs() < 0.1, "{change_percent}");
    assert_eq!(health.suspected.iter().map(|id| &*id.0).collect::<Vec<_>>(), ["bandwidth1"]);

    let health = found([(115.0, 43.0), (100.0, 50.0)]);
    assert_eq!(health.severity, Severity::Degraded);
    let suspected = health.findings.iter().any(|finding| {
        matches!(&finding.symptom, Symptom::Slower { suspicion: Some(Suspicion::MemorySlow), .. })
    });
    assert!(suspected, "{:?}", health.findings);
}

#[test]
fn missing_memory_is_failing_and_explains_the_bandwidth_of_its_node() {
    let now = run(machine([128, 96]), [(100.0, 50.0), (100.0, 34.0)], 1.0, false);
    let health = health(&baseline(), &[now], LIMITS);
    assert_eq!(health.severity, Severity::Failing);
    let Symptom::Slower { change_percent, .. } = health.findings[0].symptom else {
        panic!("{:?}", health.findings)
    };
    let why = Suspicion::ModuleMissing;
    assert_eq!(health.findings[0].symptom, slower(1, Family::Bandwidth, change_percent, why));
    let (node, bytes, baseline_bytes) = (NodeId(1), 96 << 30, 128 << 30);
    let missing = Symptom::MemoryMissing { node, bytes, baseline_bytes };
    assert_eq!(health.findings[1].symptom, missing);

    let gone = run(machine([128, 0]), GOOD, 1.0, false);
    let found = self::health(&baseline(), &[gone], LIMITS);
    assert_eq!(found.findings[0].symptom, Symptom::NodeMissing { node, baseline_bytes });
}

#[test]
fn effects_that_do_not_recur_are_not_claimed() {
    let slow = run(machine([128, 128]), [(100.0, 50.0), (100.0, 30.0)], 1.0, false);
    let again = run(machine([128, 128]), GOOD, 1.0, false);
    assert_eq!(
        health(&baseline(), std::slice::from_ref(&slow), LIMITS).severity,
        Severity::Failing
    );
    let health = health(&baseline(), &[slow, again], LIMITS);
    assert_eq!(health.severity, Severity::Healthy, "{:?}", health.findings);
}

#[test]
fn results_disturbed_by_other_load_are_not_certain() {
    let slow = run(machine([128, 128]), [(100.0, 50.0), (100.0, 30.0)], 1.0, true);
    let health = health(&baseline(), &[slow], LIMITS);
    assert_eq!(health.severity, Severity::Disturbed, "{:?}", health.findings);
}

/// Regression: a budget that ended before the bandwidth was measured gave a healthy machine.
#[test]
fn figures_that_were_planned_but_not_measured_are_not_healthy() {
    let mut now = run(machine([128, 128]), GOOD, 1.0, false);
    now.document.cells[3].samples.clear();
    let health = health(&baseline(), &[now], LIMITS);
    let (scope, family) = (Scope::MemoryNode(1), Family::Bandwidth);
    assert_eq!(health.severity, Severity::Disturbed);
    assert_eq!(health.findings[0].symptom, Symptom::NotMeasured { scope, family });
    assert_eq!((health.findings.len(), health.figures.len()), (1, 3));
}

#[test]
fn figures_that_a_run_of_the_baseline_lacks_are_not_healthy() {
    let mut baseline = baseline();
    baseline[4].document.cells[3].samples.clear();
    let now = run(machine([128, 128]), GOOD, 1.0, false);
    let health = health(&baseline, &[now], LIMITS);
    let (scope, family, runs) = (Scope::MemoryNode(1), Family::Bandwidth, 4);
    assert_eq!(health.severity, Severity::Disturbed);
    assert_eq!(health.findings[0].symptom, Symptom::NotInBaseline { scope, family, runs });
    let words = "node 1: bandwidth not compared, as only 4 of 5 runs of the baseline measured it";
    assert_eq!(reason(&health), words);
}

#[test]
fn a_baseline_of_another_processor_or_of_virtual_time_is_no_baseline() {
    let mut baseline = baseline();
    let of = |facts: &[(&str, &str)]| Environment {
        facts: facts.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
    };
    let here = of(&[("cpu_model", "EPYC 7763")]);
    assert_eq!(of_another_kind(&baseline, &here), None, "it is not known");
    baseline[2].document.run.environment = of(&[("cpu_model", "QEMU TCG")]);
    assert_eq!(of_another_kind(&baseline, &here), Some(("", ["QEMU TCG", "EPYC 7763"])));
    baseline[2].document.run.environment = of(&[("cpu_model", "EPYC 7763"), ("time", "virtual")]);
    assert_eq!(of_another_kind(&baseline, &here), Some(("", ["virtual", "a clock's"])));
}

#[test]
fn a_size_that_fits_the_caches_shows_no_latency_of_memory() {
    let cached = |noise: f64| {
        let mut run = run(machine([128, 128]), GOOD, noise, false);
        let caches = &mut run.document.run.machine.caches;
        caches.push(Cache {
            level: 3,
            kind: CacheKind::Unified,
            size_bytes: Some(1 << 28),
            line_bytes: None,
            ways: None,
            cpus: CpuSet::new(),
        });
        run
    };
    let baseline = [0.99, 1.0, 1.01].map(cached);
    let health = health(&baseline, &[cached(1.0)], LIMITS);
    let families: Vec<Family> = health.figures.iter().map(|figure| figure.family).collect();
    let node = [Family::CacheLatency, Family::Bandwidth];
    assert_eq!(families, [node, node].concat());
}

#[test]
fn a_noisier_baseline_claims_less() {
    let noise = [0.8, 1.0, 1.25, 1.1, 0.9];
    let baseline = hourly(noise.map(|noise| run(machine([128, 128]), GOOD, noise, false)));
    let now = run(machine([128, 128]), [(100.0, 50.0), (100.0, 35.0)], 1.0, false);
    let health = health(&baseline, &[now], LIMITS);
    assert_eq!(health.severity, Severity::Healthy, "{:?}", health.findings);
}

#[test]
fn none_of_thousand_machines_that_are_as_they_were_is_failing() {
    let mut rng = numalab_stats::Rng::new(1);
    // Roughly normal, with a standard deviation of 5 %.
    let mut noise = || {
        let sum: f64 = (0..12).map(|_| rng.next_u64() as f64 / u64::MAX as f64).sum();
        ((sum - 6.0) * 0.05).exp()
    };
    for _ in 0..1000 {
        let mut one = || {
            let figures = GOOD.map(|(latency, bandwidth)| (latency * noise(), bandwidth * noise()));
            run(machine([128, 128]), figures, 1.0, false)
        };
        let baseline = hourly((0..5).map(|_| one()));
        let first = health(&baseline, &[one()], LIMITS);
        let both = health(&baseline, &[one(), one()], LIMITS);
        assert!(first.suspected.is_empty() || both.severity < Severity::Failing, "{both:?}");
    }
}

#[test]
fn a_baseline_of_one_time_calls_nothing_failing_that_is_only_slower() {
    let mut baseline = baseline();
    baseline.iter_mut().for_each(|run| run.document.run.started_unix_ms = 0);
    let slow = [(100.0, 50.0), (101.0, 35.0)];
    let found = health(&baseline, &[run(machine([128, 128]), slow, 1.0, false)], LIMITS);
    assert_eq!((found.severity, found.baseline_groups), (Severity::Degraded, 1));
    let words = "(not certain: the baseline was taken at one time; 3 are needed)";
    assert!(reason(&found).ends_with(words), "{}", reason(&found));
    // Runs of several hosts at one time differ as the hosts do.
    for (run, host) in baseline.iter_mut().zip(["a", "b", "c", "a", "b"]) {
        run.document.run.environment.facts.insert("hostname".into(), host.into());
    }
    let found = health(&baseline, &[run(machine([128, 128]), slow, 1.0, false)], LIMITS);
    assert_eq!((found.severity, found.baseline_groups), (Severity::Failing, 3));
    let gone = run(machine([128, 0]), GOOD, 1.0, false);
    assert_eq!(health(&baseline[..1], &[gone], LIMITS).severity, Severity::Failing);
}

/// Runs taken back to back share a state.
#[test]
fn states_that_last_for_a_group_of_runs_are_not_findings() {
    let mut rng = numalab_stats::Rng::new(1);
    let mut normal = |deviation: f64| {
        let sum: f64 = (0..12).map(|_| rng.next_u64() as f64 / u64::MAX as f64).sum();
        ((sum - 6.0) * deviation).exp()
    };
    let (mut wrong, mut wrong_by_run) = (0, 0);
    for _ in 0..500 {
        let mut group = |runs: usize| -> Vec<NamedRun> {
            let state = normal(0.1);
            (0..runs)
                .map(|_| run(machine([128, 128]), GOOD, state * normal(0.003), false))
                .collect()
        };
        let mut baseline: Vec<NamedRun> = Vec::new();
        for hour in 0..3 {
            let mut runs = group(2);
            runs.iter_mut().for_each(|run| run.document.run.started_unix_ms = hour * 3_600_000);
            baseline.extend(runs);
        }
        let now = group(1);
        let finds =
            |of: &[NamedRun]| u32::from(health(of, &now, LIMITS).severity > Severity::Healthy);
        wrong += finds(&baseline);
        wrong_by_run += finds(&hourly(baseline));
    }
    println!("of 500 checks {wrong} find something, {wrong_by_run} with the run as the unit");
    assert!(wrong <= 10 && wrong_by_run > 2 * wrong, "{wrong} {wrong_by_run}");
}
