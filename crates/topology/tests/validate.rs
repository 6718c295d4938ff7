//! Findings about machines.

mod any_machine;
mod machines;
mod ranges;

use any_machine::any_machine;
use machines::machine;
use numalab_topology::{
    AccessAttributes, AccessClass, Cache, CacheKind, Distances, Findings, Machine, NodeId, Severity,
};
use proptest::prelude::*;
use ranges::range;

fn two_nodes() -> Machine {
    let mut machine = machine(&[2, 2], &[true, true], &[vec![10, 21], vec![21, 10]]);
    machine.ranges = vec![range(0, 1 << 30, 0), range(1 << 30, 1 << 30, 1)];
    machine
}

/// Returns the findings after `spoil` has changed the two-node machine.
fn codes(spoil: impl Fn(&mut Machine)) -> Vec<(Severity, String)> {
    let mut machine = two_nodes();
    spoil(&mut machine);
    let findings = machine.validate().into_iter();
    findings.map(|finding| (finding.severity, finding.code)).collect()
}

fn error(code: &str) -> (Severity, String) {
    (Severity::Error, code.to_owned())
}

fn warning(code: &str) -> (Severity, String) {
    (Severity::Warning, code.to_owned())
}

fn access(initiator: u32, target: u32, read_ps: u64) -> AccessAttributes {
    AccessAttributes {
        initiator: NodeId(initiator),
        target: NodeId(target),
        class: AccessClass::Cpu,
        read_latency_ps: Some(read_ps),
        ..AccessAttributes::default()
    }
}

#[test]
fn a_sound_machine_has_no_findings() {
    assert_eq!(two_nodes().validate(), []);
    assert_eq!(Machine::default().validate(), []);
}

#[test]
fn a_missing_distance_is_reported() {
    let unknown = codes(|machine| machine.distances = Distances::default());
    assert_eq!(unknown, [warning("distance-missing")]);
    let one = codes(|machine| {
        machine.distances = Distances::uniform(2, 20);
        let mut rows = Distances::unknown(2);
        rows.set(0, 0, 10);
        rows.set(1, 1, 10);
        rows.set(0, 1, 20);
        machine.distances = rows;
    });
    assert_eq!(one, [warning("distance-missing")]);
}

#[test]
fn a_matrix_of_another_size_is_found() {
    let found = codes(|machine| machine.distances = Distances::uniform(3, 20));
    assert_eq!(found, [error("distance-size")]);
}

#[test]
fn an_asymmetric_distance_is_found_once() {
    let found = codes(|machine| machine.distances.set(1, 0, 24));
    assert_eq!(found, [warning("distance-asymmetric")]);
}

#[test]
fn distances_that_acpi_forbids_are_found() {
    let below = codes(|machine| {
        machine.distances.set(0, 1, 9);
        machine.distances.set(1, 0, 9);
    });
    assert_eq!(below, [error("distance-below-10"), error("distance-below-10")]);
    let diagonal = codes(|machine| machine.distances.set(1, 1, 11));
    assert_eq!(diagonal, [error("distance-diagonal")]);
    let remote = codes(|machine| {
        machine.distances.set(0, 1, 10);
        machine.distances.set(1, 0, 10);
    });
    assert_eq!(remote, [warning("distance-local-remote"), warning("distance-local-remote")]);
}

#[test]
fn overlapping_ranges_are_found_even_behind_a_short_one() {
    let found = codes(|machine| {
        machine.ranges = vec![range(0, 100, 0), range(10, 5, 1), range(50, 10, 1)];
    });
    assert_eq!(found, [error("range-overlap"), error("range-overlap")]);
}

#[test]
fn more_free_memory_than_memory_is_found_unless_the_memory_is_unknown() {
    let free = |free: u64, memory_unknown| {
        codes(|machine| {
            let node = &mut machine.nodes[0];
            (node.free_bytes, node.memory_unknown) =
                (Some(node.memory_bytes + free), memory_unknown);
        })
    };
    assert_eq!(free(0, false), []);
    assert_eq!(free(1, false), [warning("free-exceeds-memory")]);
    assert_eq!(free(1, true), []);
}

#[test]
fn impossible_ranges_are_found() {
    let empty = codes(|machine| machine.ranges[1].length_bytes = 0);
    assert_eq!(empty, [warning("range-empty")]);
    let end = codes(|machine| machine.ranges[1].base = u64::MAX - 5);
    assert_eq!(end, [error("range-end")]);
    let stranger = codes(|machine| machine.ranges[1].node = NodeId(7));
    assert_eq!(stranger, [error("range-node-unknown")]);
}

#[test]
fn a_node_without_cpus_and_memory_is_found() {
    let rows = [vec![10, 20], vec![20, 10]];
    let findings = machine(&[1, 0], &[true, false], &rows).validate();
    assert_eq!(
        findings[0].to_string(),
        "warning: node 1: has neither cpus nor memory [node-empty]"
    );
}

#[test]
fn cpus_outside_nodes_are_found() {
    let lost = codes(|machine| {
        machine.cpus[3].node = None;
        machine.nodes[1].cpus.remove(machine.cpus[3].id);
    });
    assert_eq!(lost, [warning("cpu-without-node")]);
    let torn = codes(|machine| {
        machine.cpus[3].node = Some(NodeId(0));
        machine.cpus[3].l3_group = None;
    });
    assert_eq!(torn, [error("cpu-node-disagrees"), error("cpu-node-disagrees")]);
    let absent = codes(|machine| {
        machine.cpus.pop();
    });
    assert_eq!(absent, [error("cpu-node-disagrees")]);
}

#[test]
fn groups_that_span_nodes_are_found() {
    let l3 = codes(|machine| machine.cpus[2].l3_group = Some(0));
    assert_eq!(l3, [(Severity::Note, "l3-group-spans-nodes".to_owned())]);
    let core = codes(|machine| machine.cpus[2].core = Some(0));
    assert_eq!(core, [error("core-spans-nodes"), warning("core-spans-packages")]);
}

/// Returns the codes of odd shapes after `spoil` has changed a machine of one node and eight cores.
fn shapes(spoil: impl Fn(&mut Machine)) -> Vec<String> {
    let mut machine = machine(&[8], &[true], &[vec![10]]);
    for cpu in &mut machine.cpus {
        (cpu.core, cpu.package, cpu.l3_group) = (Some(cpu.id.0), Some(0), Some(0));
    }
    spoil(&mut machine);
    let mut findings = Findings::default();
    machine.note_odd_shapes(&mut findings);
    findings.into_list().into_iter().map(|finding| finding.code).collect()
}

/// Returns a cache of these cpus.
fn cache(level: u8, cpus: &str) -> Cache {
    Cache {
        level,
        kind: CacheKind::Data,
        size_bytes: Some(1 << 15),
        line_bytes: None,
        ways: None,
        cpus: cpus.parse().unwrap(),
    }
}

#[test]
fn an_l3_of_each_core_is_noted_and_one_of_several_cores_is_not() {
    let groups = |cores: u32| {
        shapes(|machine| {
            machine.cpus.iter_mut().for_each(|cpu| cpu.l3_group = Some(cpu.id.0 / cores));
        })
    };
    assert_eq!((groups(1), groups(2)), (vec!["l3-per-core".to_owned()], Vec::new()));
    let threads = shapes(|machine| {
        for cpu in &mut machine.cpus {
            (cpu.core, cpu.l3_group) = (Some(cpu.id.0 / 2), Some(cpu.id.0 / 2));
        }
    });
    assert_eq!(threads, ["l3-per-core"]);
    assert_eq!(shapes(|machine| machine.cpus.truncate(1)), [""; 0], "one core");
}

#[test]
fn caches_that_are_shared_more_widely_than_hardware_does_are_reported_once() {
    let with = |caches: &[Cache]| shapes(|machine| machine.caches = caches.to_vec());
    assert_eq!(with(&[cache(1, "0-7"), cache(3, "0-7")]), ["l1-shared"]);
    assert_eq!(
        with(&[cache(2, "0-7"), cache(3, "0-3"), cache(3, "4-7")]),
        ["cache-wider-than-next"]
    );
    assert_eq!(with(&[cache(1, "0"), cache(2, "0-3"), cache(3, "0-7")]), [""; 0]);
    assert_eq!(with(&[cache(2, "6-7"), cache(3, "0-5")]), [""; 0], "cores outside of the L3");
    let l1i = Cache { kind: CacheKind::Instruction, ..cache(1, "0-1") };
    assert_eq!(with(&[l1i]), [""; 0], "two cores of a module");
}

#[test]
fn packages_and_nodes_that_cross_are_noted() {
    let of = |package: [u32; 4]| {
        let mut machine = two_nodes();
        for (cpu, package) in machine.cpus.iter_mut().zip(package) {
            (cpu.core, cpu.package) = (Some(cpu.id.0), Some(package));
        }
        let mut findings = Findings::default();
        machine.note_odd_shapes(&mut findings);
        let codes = findings.into_list().into_iter().map(|finding| finding.code);
        codes.filter(|code| code.starts_with("packages")).count()
    };
    assert_eq!(of([0, 1, 0, 1]), 1);
    for nested in [[0, 0, 1, 1], [0, 0, 0, 0], [0, 1, 2, 3]] {
        assert_eq!(of(nested), 0, "{nested:?}");
    }
}

#[test]
fn all_cores_that_span_packages_are_one_finding() {
    let torn = codes(|machine| {
        for cpu in &mut machine.cpus {
            (cpu.core, cpu.package) = (Some(cpu.id.0 / 2), Some(cpu.id.0 % 2));
        }
    });
    assert_eq!(torn, [warning("core-spans-packages")]);
}

#[test]
fn ids_out_of_order_are_found() {
    let nodes = codes(|machine| machine.nodes.swap(0, 1));
    assert!(nodes.contains(&error("nodes-unordered")), "{nodes:?}");
    let cpus = codes(|machine| machine.cpus.swap(0, 1));
    assert!(cpus.contains(&error("cpus-unordered")), "{cpus:?}");
}

#[test]
fn latencies_that_contradict_the_distances_are_found() {
    let fine = codes(|machine| machine.access = vec![access(0, 0, 90), access(0, 1, 180)]);
    assert_eq!(fine, []);
    let local = codes(|machine| machine.access = vec![access(0, 1, 90), access(0, 0, 180)]);
    assert_eq!(local, [warning("access-local-slower")]);
    let rows = [vec![10, 20, 30], vec![20, 10, 20], vec![30, 20, 10]];
    let mut three = machine(&[1; 3], &[true; 3], &rows);
    three.access = vec![access(0, 0, 90), access(0, 1, 300), access(0, 2, 200)];
    assert_eq!(three.validate()[0].code, "access-order");
    assert_eq!(
        three.validate()[0].message,
        "is nearer, but reads take 300 ps, longer than the 200 ps to node 2"
    );
}

#[test]
fn attributes_of_impossible_nodes_are_found() {
    let stranger = codes(|machine| machine.access = vec![access(0, 9, 90)]);
    assert_eq!(stranger, [error("access-node-unknown")]);
    let headless = codes(|machine| {
        let cpus = machine.nodes[1].cpus.clone();
        machine.cpus.retain(|cpu| !cpus.contains(cpu.id));
        machine.nodes[1].cpus = Default::default();
        machine.access = vec![access(1, 0, 90)];
    });
    assert_eq!(headless, [warning("access-initiator-cpu-less")]);
}

proptest! {
    #[test]
    fn findings_are_the_same_every_time(machine in any_machine()) {
        prop_assert_eq!(machine.validate(), machine.validate());
    }

    #[test]
    fn asymmetry_is_found_exactly_where_it_is(machine in any_machine()) {
        let count = machine.nodes.len();
        let pairs = (0..count).flat_map(|from| (from + 1..count).map(move |to| (from, to)));
        let expected = pairs
            .filter(|&(from, to)| machine.distances.get(from, to) != machine.distances.get(to, from))
            .count();
        let findings = machine.validate();
        let found = findings.iter().filter(|finding| finding.code == "distance-asymmetric");
        // The ninth finding gives the number of the rest.
        prop_assert_eq!(found.count(), expected.min(Findings::MAX_ALIKE + 1));
    }
}

#[test]
fn similar_findings_are_counted_rather_than_listed() {
    let rows: Vec<Vec<u8>> =
        (0..100).map(|from| (0..100).map(|to| if from == to { 10 } else { 9 }).collect()).collect();
    let machine = machine(&[1; 100], &[true; 100], &rows);
    let findings = machine.validate();
    assert_eq!(findings.len(), Findings::MAX_ALIKE + 1);
    let last = findings.last().unwrap();
    assert_eq!(last.code, "distance-below-10");
    assert_eq!(last.message, "9892 more like it");
}
