//! A health check: figures of each severity, and the reason in one line.

use std::collections::BTreeSet;

use numalab_page::{Mood, Style};
use numalab_record::CellId;
use numalab_results::Report;
use numalab_results::fleet::{Family, Scope};
use numalab_results::health::page::reason;
use numalab_results::health::{
    Health, HealthFigure, HealthFinding, Limits, Severity, Suspicion, Symptom,
};
use numalab_topology::{CpuSet, NodeId};

use crate::whole;

fn figure(scope: Scope, family: Family, change_percent: f64, severity: Severity) -> HealthFigure {
    HealthFigure {
        scope,
        family,
        change_percent,
        spread_percent: 0.4,
        p: 0.0001,
        disturbed_share: 0.1,
        severity,
        cells: vec![CellId("one".to_owned()), CellId("two".to_owned())],
    }
}

fn slower(
    scope: Scope,
    family: Family,
    change_percent: f64,
    suspicion: Option<Suspicion>,
) -> Symptom {
    Symptom::Slower { scope, family, change_percent, suspicion }
}

fn health(findings: Vec<(Severity, Symptom)>, figures: Vec<HealthFigure>) -> Health {
    let finding = |(severity, symptom)| HealthFinding { severity, symptom };
    Health {
        severity: findings.first().map_or(Severity::Healthy, |found| found.0),
        baseline: ["a", "b", "c"].map(str::to_owned).to_vec(),
        baseline_groups: 3,
        limits: Limits { degraded_percent: 10.0, failing_percent: 20.0 },
        findings: findings.into_iter().map(finding).collect(),
        figures,
        suspected: BTreeSet::new(),
    }
}

#[test]
fn a_check_with_every_severity_is_as_it_was_in_every_format() {
    let node = Scope::MemoryNode(1);
    let slow = slower(node.clone(), Family::Bandwidth, -31.25, Some(Suspicion::ChannelSlow));
    let clock = slower(Scope::Host, Family::Core, -12.0, Some(Suspicion::ClockLimited));
    let doubtful = slower(Scope::MemoryNode(0), Family::MemoryLatency, 14.0, None);
    let findings = vec![
        (Severity::Failing, slow),
        (Severity::Degraded, clock),
        (Severity::Disturbed, doubtful),
    ];
    let figures = vec![
        figure(Scope::Host, Family::Core, -12.0, Severity::Degraded),
        figure(Scope::MemoryNode(0), Family::MemoryLatency, 14.0, Severity::Disturbed),
        figure(node.clone(), Family::MemoryLatency, 0.25, Severity::Healthy),
        figure(node, Family::Bandwidth, -31.25, Severity::Failing),
    ];
    whole::compare("health", &health(findings, figures));
}

#[test]
fn a_healthy_machine_is_as_it_was_in_every_format() {
    let figures = vec![figure(Scope::Host, Family::Core, 0.1, Severity::Healthy)];
    whole::compare("health-healthy", &health(Vec::new(), figures));
}

#[test]
fn a_check_of_an_earlier_version_does_not_say_when_its_baseline_was_taken() {
    let earlier = Health { baseline_groups: 0, ..health(Vec::new(), Vec::new()) };
    let meta = earlier.page().meta;
    assert_eq!(meta, "3 runs as baseline; degraded beyond 10.0 %, failing beyond 20.0 %");
}

#[test]
fn every_symptom_has_its_words() {
    let said = |symptom| reason(&health(vec![(Severity::Failing, symptom)], Vec::new()));
    let node = NodeId(3);
    let (bytes, baseline_bytes) = (96 << 30, 128 << 30);
    let cpus: CpuSet = "2,3,8".parse().unwrap();
    for (symptom, words) in [
        (Symptom::NodeMissing { node, baseline_bytes }, "node 3: no memory, 128G in the baseline"),
        (
            Symptom::MemoryMissing { node, bytes, baseline_bytes },
            "node 3: 96G of memory, 128G in the baseline, DIMM missing?",
        ),
        (Symptom::CpusMissing { cpus }, "CPUs 2,3,8 missing or offline"),
        (
            slower(Scope::Host, Family::Core, -15.4, Some(Suspicion::ClockLimited)),
            "host: core clock 15 % below the baseline, power or thermal limit?",
        ),
        (
            slower(Scope::MemoryNode(0), Family::MemoryLatency, 21.0, None),
            "node 0: memory latency 21 % above the baseline",
        ),
        (
            slower(Scope::Package(1), Family::Bandwidth, -25.0, Some(Suspicion::MemorySlow)),
            "package 1: bandwidth 25 % below the baseline, memory speed lowered?",
        ),
    ] {
        assert_eq!(said(symptom), words);
    }
}

#[test]
fn a_long_reason_is_cut_after_three_and_counts_the_rest() {
    let of =
        |node| (Severity::Failing, slower(Scope::MemoryNode(node), Family::Bandwidth, -30.0, None));
    let three = reason(&health((0..3).map(of).collect(), Vec::new()));
    assert_eq!(three.matches("bandwidth").count(), 3);
    assert!(!three.contains("more"), "{three}");
    let five = reason(&health((0..5).map(of).collect(), Vec::new()));
    assert!(five.ends_with("node 2: bandwidth 30 % below the baseline; and 2 more"), "{five}");
}

#[test]
fn severities_have_their_colours_in_the_last_column() {
    let severities =
        [Severity::Healthy, Severity::Disturbed, Severity::Degraded, Severity::Failing];
    let figures = severities.map(|of| figure(Scope::Host, Family::Core, 1.0, of)).to_vec();
    let page = health(Vec::new(), figures).page();
    let table = &page.parts[0].panels[0].table;
    assert_eq!(table.moods, [Mood::Fine, Mood::Odd, Mood::Odd, Mood::Bad]);
    let words: Vec<&str> = table.rows.iter().filter_map(|row| Some(row.last()?.as_str())).collect();
    assert_eq!(words, ["healthy", "not certain", "degraded", "failing"]);
    let coloured = page.terminal(Style::Colour);
    assert!(coloured.contains("\u{1b}["), "{coloured}");
}
