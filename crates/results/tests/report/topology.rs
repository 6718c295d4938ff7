//! Machines as text and JSON.

use numalab_page::Style;
use numalab_record::system::Described;
use numalab_results::Report;
use numalab_topology::*;

use crate::runs::machine;

fn text(machine: &Machine, findings: &[Finding]) -> String {
    let described = Described { machine: machine.clone(), findings: findings.to_vec() };
    let text = described.page().terminal(Style::Plain);
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{widest:?}:\n{text}");
    text
}

/// Returns 24 nodes and 384 cpus with SMT: cpus of every second package interleaved, nodes without
/// memory and without cpus, tiers, HMAT and offline cpus.
fn large() -> Machine {
    let distance = |from: u32, to: u32| match from.abs_diff(to) {
        0 => 10,
        1..8 => 16,
        _ => 32,
    };
    let mut machine = machine(24, 16, distance);
    for cpu in &mut machine.cpus {
        cpu.core = Some(cpu.id.0 / 2);
        cpu.thread = cpu.id.0 % 2;
        cpu.online = cpu.id.0 < 380;
    }
    machine.nodes[20].memory_bytes = 0;
    for node in &mut machine.nodes[21..] {
        node.cpus = CpuSet::new();
        node.memory_bytes = 0;
    }
    machine.nodes[23].memory_bytes = 512 << 30;
    machine.nodes[23].online = false;
    machine.tiers = vec![MemoryTier { id: 4, nodes: (0..20).map(NodeId).collect() }];
    machine.access = (0..20)
        .map(|target| AccessAttributes {
            target: NodeId(target),
            class: AccessClass::Cpu,
            read_latency_ps: Some(86_600),
            read_bandwidth_mb_per_s: Some(204_800),
            ..AccessAttributes::default()
        })
        .collect();
    machine.allowed = Some(Allowed {
        cpus: (0..8).map(CpuId).collect(),
        memory_nodes: (0..2).map(NodeId).collect(),
        ..Allowed::default()
    });
    machine
}

fn odd() -> Finding {
    Finding {
        severity: Severity::Warning,
        code: "distance-asymmetric".into(),
        place: "node3/distance".into(),
        message: "distance to node 5 is 11, back it is `12\u{1b}[31m`; expected the same".into(),
    }
}

#[test]
fn machines_from_one_node_to_twenty_four_fit_the_terminal() {
    insta::assert_snapshot!("topology-one-node", text(&machine(1, 2, |_, _| 10), &[]));
    insta::assert_snapshot!("topology-24-nodes", text(&large(), &[odd()]));
    insta::assert_snapshot!("topology-nothing", text(&Machine::default(), &[]));
}

#[test]
fn memory_that_no_node_is_known_to_have_is_unknown() {
    let mut machine = machine(2, 2, |_, _| 10);
    machine.nodes[0].memory_bytes = 0;
    let known = text(&machine, &[]);
    assert!(known.contains(" none ") && !known.contains("unknown"), "{known}");
    machine.nodes[1].memory_bytes = 0;
    let unknown = text(&machine, &[]);
    assert!(unknown.contains("4 cpus, memory unknown\n"), "{unknown}");
    assert_eq!(unknown.matches(" unknown  ").count(), 2, "{unknown}");
}

#[test]
fn latencies_and_bandwidths_are_rounded_to_tenths() {
    let mut machine = machine(1, 1, |_, _| 10);
    machine.access = vec![AccessAttributes {
        read_latency_ps: Some(99_949),
        write_latency_ps: Some(99_950),
        read_bandwidth_mb_per_s: Some(1_790),
        ..AccessAttributes::default()
    }];
    let text = text(&machine, &[]);
    let row = text.lines().find(|line| line.contains("node 0 → node 0")).expect("a row");
    let figures: Vec<&str> = row.split_whitespace().skip(6).collect();
    assert_eq!(figures, ["99.9", "100.0", "1.8", "–"], "{text}");
}

#[test]
fn cpus_an_equal_step_apart_are_listed_with_the_step() {
    let mut machine = machine(2, 8, |_, _| 10);
    for cpu in &mut machine.cpus {
        cpu.package = Some(cpu.id.0 % 2);
    }
    assert!(text(&machine, &[]).contains("0-14:2; 1-15:2"));
}

#[test]
fn a_finding_cannot_steer_the_terminal() {
    let text = text(&machine(1, 1, |_, _| 10), &[odd()]);
    assert!(!text.contains('\u{1b}'));
    assert!(text.contains("distance-asymmetric"));
}

#[test]
fn the_json_of_a_machine_reads_back_as_that_machine() {
    let machine = large();
    let described = Described { machine: machine.clone(), findings: vec![odd()] };
    let json = described.json().expect("it serialises");
    let mut value: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(value["schema"], "numalab/topology-2");
    assert_eq!(value["findings"][0]["code"], "distance-asymmetric");
    let back: Machine = serde_json::from_value(value["machine"].take()).expect("a machine");
    assert_eq!(back, machine);
}
