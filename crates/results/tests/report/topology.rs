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
fn caches_in_front_of_memory_are_shown_with_their_node() {
    let mut machine = machine(2, 2, |_, _| 10);
    let cache =
        |level, size_bytes| MemorySideCache { level, size_bytes, line_bytes: None, ways: None };
    assert!(!text(&machine, &[]).contains("Memory-side cache"));
    machine.nodes[0].memory_side_caches = vec![cache(1, 16 << 30)];
    machine.nodes[1].memory_side_caches = vec![cache(2, 1 << 30), cache(1, 16 << 30)];
    let shown = text(&machine, &[]);
    let row = "Memory-side cache  16G, before node 0; 1G and 16G, before node 1";
    assert!(shown.contains(row), "{shown}");
    machine.nodes[0].memory_side_caches.clear();
    let csv = Described { machine, findings: Vec::new() }.rows().unwrap().csv();
    let ends: Vec<&str> = csv.lines().map(|line| line.rsplit(',').next().unwrap()).collect();
    assert_eq!(ends, ["side_cache_bytes", "", "18253611008"]);
}

#[test]
fn cpus_without_an_l3_cache_are_named() {
    let mut machine = machine(1, 4, |_, _| 10);
    assert!(text(&machine, &[]).contains("one for all cpus"));
    machine.cpus[3].l3_group = None;
    let shown = text(&machine, &[]);
    assert!(shown.contains("L3 groups  one for cpus 0-2, none for cpus 3"), "{shown}");
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
fn measured_costs_of_accesses_are_not_called_the_firmwares() {
    let machine = large();
    let firmware = text(&machine, &[]);
    assert!(firmware.contains("Access costs from the firmware") && firmware.contains("(HMAT)"));
    let note = Finding {
        severity: Severity::Note,
        code: "latency-measured".into(),
        place: "latencies".into(),
        message: "measured: random over 64M, 4k pages".into(),
    };
    let measured = text(&machine, &[note]);
    assert!(measured.contains("Access costs measured by numalab"), "{measured}");
    assert!(measured.contains("(measured)") && !measured.contains("HMAT"), "{measured}");
    let given =
        Finding::new(Severity::Note, "access-described", "costs of accesses", "given by a file");
    let described = text(&machine, &[given]);
    assert!(described.contains("Access costs of the described machine"), "{described}");
    assert!(!described.contains("HMAT") && !described.contains("firmware"), "{described}");
}

#[test]
fn cpus_an_equal_step_apart_are_listed_with_the_step() {
    let mut machine = machine(2, 8, |_, _| 10);
    for cpu in &mut machine.cpus {
        cpu.package = Some(cpu.id.0 % 2);
    }
    assert!(text(&machine, &[]).contains("0-14:2; 1-15:2"));
    for cpu in &mut machine.cpus {
        cpu.package = Some(cpu.id.0 % 4);
    }
    let four = text(&machine, &[]);
    assert!(four.contains("0,4,8,12; 1,5,9,13"), "four are as short without it: {four}");
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

/// Two nodes with cpus, the second without memory; a GPU's memory on node 2; 7 empty nodes, one of
/// them a device's.
fn odd_nodes() -> Machine {
    let mut machine =
        machine(
            10,
            2,
            |from, to| if from == to { 10 } else { 20 + u8::try_from(to).expect("small") },
        );
    machine.cpus.retain(|cpu| cpu.id.0 < 4);
    machine.nodes[1].memory_bytes = 0;
    for node in &mut machine.nodes[2..] {
        node.cpus = CpuSet::new();
        node.memory_bytes = if node.id == NodeId(2) { 96 << 30 } else { 0 };
    }
    machine.devices = vec![Device {
        address: "0000:01:00.0".into(),
        kind: DeviceKind::Network,
        id: None,
        driver: None,
        node: Some(NodeId(4)),
        names: Vec::new(),
    }];
    machine
}

#[test]
fn nodes_that_lack_something_are_explained_and_empty_ones_take_one_row() {
    let text = text(&odd_nodes(), &[]);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("CPUs without local memory: node 1 (nearest memory: node 0)."),
        "{text}"
    );
    assert!(words.contains("another tier: node 2; --numa=auto leaves it out."), "{text}");
    assert!(text.lines().any(|line| line.trim_start().starts_with("3-9  none")), "{text}");
    let is_row = |line: &&str| {
        let number = line.strip_prefix("node ").and_then(|rest| rest.split_whitespace().next());
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    assert_eq!(text.lines().filter(is_row).count(), 4, "nodes 0, 1, 2 and 4: {text}");
}

#[test]
fn memory_of_nodes_whose_cpus_are_offline_is_not_called_that_of_a_device() {
    let mut machine = machine(3, 6, |_, _| 20);
    let second = machine.nodes[1].cpus.clone();
    for cpu in machine.cpus.iter_mut().filter(|cpu| second.contains(cpu.id)) {
        cpu.online = false;
    }
    let said =
        |machine: &Machine| text(machine, &[]).split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "Memory of offline cpus: node 1; --numa=auto leaves it out.";
    assert!(said(&machine).contains(expected), "{}", said(&machine));
    machine.nodes[2].cpus = CpuSet::new();
    machine.cpus.retain(|cpu| cpu.node != Some(NodeId(2)));
    let expected = "Memory without cpus, of a device or another tier: node 2. Memory of offline \
                    cpus: node 1; --numa=auto leaves them out.";
    assert!(said(&machine).contains(expected), "{}", said(&machine));
}

#[test]
fn nodes_of_unknown_memory_without_cpus_are_not_said_to_have_memory() {
    let mut machine = machine(3, 6, |_, _| 20);
    machine.nodes.iter_mut().skip(1).for_each(|node| node.cpus = CpuSet::new());
    machine.cpus.retain(|cpu| cpu.node == Some(NodeId(0)));
    (machine.nodes[2].memory_unknown, machine.nodes[2].memory_bytes) = (true, 0);
    let said = text(&machine, &[]).split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "Memory without cpus, of a device or another tier: node 1. Without cpus, memory \
                    unknown: node 2; --numa=auto leaves them out.";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn memory_is_not_called_that_of_a_device_if_the_nodes_of_some_cpus_are_unknown() {
    let mut machine = machine(2, 4, |_, _| 20);
    let lost = std::mem::take(&mut machine.nodes[1].cpus);
    for cpu in machine.cpus.iter_mut().filter(|cpu| lost.contains(cpu.id)) {
        cpu.node = None;
    }
    let said = text(&machine, &[]).split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = format!(
        "Memory without known cpus (cpus {lost} are on no known node): node 1; --numa=auto"
    );
    assert!(said.contains(&expected), "{said}");
}

#[test]
fn memory_without_cpus_is_not_reported_as_left_out_if_there_is_no_other() {
    let mut machine = machine(2, 4, |_, _| 20);
    machine.nodes[1].cpus = CpuSet::new();
    machine.cpus.retain(|cpu| cpu.node == Some(NodeId(0)));
    machine.nodes[0].memory_bytes = 0;
    let said = text(&machine, &[]).split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "node 1; there is no other memory, so --numa=auto takes it.";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn sizes_of_huge_pages_are_those_of_the_machine() {
    let mut machine = machine(1, 2, |_, _| 10);
    let pool = |page_bytes| HugePagePool { page_bytes, total: 0, free: 0 };
    machine.nodes[0].huge_pages = [2 << 20, 512 << 20, 16 << 30].map(pool).to_vec();
    let without = text(&machine, &[]);
    assert!(
        without.contains("No huge pages are reserved; their sizes are 2M, 512M, 16G."),
        "{without}"
    );
    machine.nodes[0].huge_pages[1].total = 3;
    assert!(text(&machine, &[]).contains("512M 0/3"));
}

#[test]
fn local_memory_that_is_not_allowed_is_named() {
    let mut machine = machine(2, 2, |from, to| if from == to { 10 } else { 20 });
    let allowed = |cpus: &str, nodes: &str| Allowed {
        cpus: cpus.parse().expect("cpus"),
        memory_nodes: nodes.parse().expect("nodes"),
        ..Allowed::default()
    };
    machine.allowed = Some(allowed("0,1", "1"));
    let words = text(&machine, &[]).split_whitespace().collect::<Vec<_>>().join(" ");
    let expected =
        "cpus 0,1, memory of nodes 1; memory of node 0, local to these cpus, is not allowed";
    assert!(words.contains(expected), "{words}");
    machine.allowed = Some(allowed("0,1", "0"));
    assert!(!text(&machine, &[]).contains("is not allowed"));
}
