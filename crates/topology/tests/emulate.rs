//! Emulated nodes.

mod machines;
mod ranges;

use machines::machine;
use numalab_topology::{
    AccessAttributes, Cpu, Distances, EmulatedNode, EmulatedNodes, EmulationError, EmulationSpec,
    Machine, MemoryTier, NodeId, Severity, UniformError, UniformMachine,
};
use proptest::prelude::*;
use ranges::range;

const GIB: u64 = 1 << 30;

fn uniform(cpus: u32, threads_per_core: u32, packages: u32, l3_groups: u32) -> Machine {
    let memory_bytes = 8 * GIB;
    let shape = UniformMachine { cpus, threads_per_core, packages, l3_groups, memory_bytes };
    shape.build().unwrap()
}

fn emulate(base: &Machine, nodes: EmulatedNodes) -> Machine {
    EmulationSpec::new(nodes).emulate(base).unwrap()
}

fn listed(nodes: &[(u64, Option<usize>)]) -> EmulatedNodes {
    let node = |&(memory_bytes, cpus)| EmulatedNode { memory_bytes, cpus };
    EmulatedNodes::Listed(nodes.iter().map(node).collect())
}

fn cpu_lists(machine: &Machine) -> Vec<String> {
    machine.nodes.iter().map(|node| node.cpus.to_string()).collect()
}

fn sizes(machine: &Machine) -> Vec<u64> {
    machine.nodes.iter().map(|node| node.memory_bytes).collect()
}

#[test]
fn equal_nodes_share_cpus_and_memory_evenly() {
    let machine = emulate(&uniform(8, 1, 2, 4), EmulatedNodes::Equal(4));
    assert_eq!(cpu_lists(&machine), ["0,1", "2,3", "4,5", "6,7"]);
    assert_eq!(sizes(&machine), [2 * GIB; 4]);
    assert_eq!(machine.distances, Distances::uniform(4, 20));
    assert_eq!(machine.validate(), []);
}

#[test]
fn memory_is_cut_by_usable_bytes_not_by_address() {
    let machine = emulate(&uniform(4, 1, 1, 1), EmulatedNodes::Equal(4));
    let expected = [
        range(0, 2 * GIB, 0),
        range(4 * GIB, 2 * GIB, 1),
        range(6 * GIB, 2 * GIB, 2),
        range(8 * GIB, 2 * GIB, 3),
    ];
    assert_eq!(machine.ranges, expected);
}

#[test]
fn a_node_can_span_a_hole() {
    let machine = emulate(&uniform(2, 1, 1, 1), listed(&[(3 * GIB, None), (5 * GIB, None)]));
    let expected = [range(0, 2 * GIB, 0), range(4 * GIB, GIB, 0), range(5 * GIB, 5 * GIB, 1)];
    assert_eq!(machine.ranges, expected);
    assert_eq!(sizes(&machine), [3 * GIB, 5 * GIB]);
}

#[test]
fn siblings_stay_together_while_there_is_a_core_for_every_node() {
    let base = uniform(6, 2, 1, 1);
    let two = emulate(&base, EmulatedNodes::Equal(2));
    assert_eq!(cpu_lists(&two), ["0-3", "4,5"]);
    let six = emulate(&base, EmulatedNodes::Equal(6));
    assert_eq!(cpu_lists(&six), ["0", "1", "2", "3", "4", "5"]);
}

#[test]
fn more_nodes_than_cpus_leave_some_without_cpus() {
    let machine = emulate(&uniform(2, 1, 1, 1), EmulatedNodes::Equal(4));
    assert_eq!(cpu_lists(&machine), ["0", "", "1", ""]);
}

#[test]
fn listed_nodes_may_have_no_memory_or_no_cpus() {
    let nodes = listed(&[(GIB, None), (GIB, None), (2 * GIB, Some(0)), (0, None)]);
    let machine = emulate(&uniform(6, 1, 1, 1), nodes);
    assert_eq!(cpu_lists(&machine), ["0,1", "2,3", "", "4,5"]);
    assert_eq!(sizes(&machine), [GIB, GIB, 2 * GIB, 0]);
    assert_eq!(machine.memory_nodes().to_string(), "0-2");
}

#[test]
fn cpus_and_memory_that_no_node_takes_are_left_out() {
    let machine = emulate(&uniform(4, 1, 1, 1), listed(&[(GIB, Some(1)), (GIB, Some(2))]));
    assert_eq!(machine.online_cpus().to_string(), "0-2");
    assert_eq!(machine.memory_bytes(), 2 * GIB);
    let codes: Vec<String> = machine.validate().into_iter().map(|finding| finding.code).collect();
    assert_eq!(codes, ["l3-group-spans-nodes"]);
}

#[test]
fn every_physical_node_is_split_with_its_own_cpus_and_memory() {
    let mut base = machine(&[2, 2], &[true, true], &[vec![10, 21], vec![21, 10]]);
    base.ranges = vec![range(0, GIB, 0), range(8 * GIB, GIB, 1)];
    let machine = emulate(&base, EmulatedNodes::Split(2));
    assert_eq!(cpu_lists(&machine), ["0", "1", "2", "3"]);
    let bases: Vec<u64> = machine.ranges.iter().map(|range| range.base).collect();
    assert_eq!(bases, [0, GIB / 2, 8 * GIB, 8 * GIB + GIB / 2]);
    let rows =
        [vec![10, 10, 21, 21], vec![10, 10, 21, 21], vec![21, 21, 10, 10], vec![21, 21, 10, 10]];
    assert_eq!(machine.distances, Distances::from_rows(&rows).unwrap());
}

#[test]
fn a_given_distance_table_is_used_and_its_size_checked() {
    let table = Distances::from_rows(&[vec![10, 17], vec![19, 10]]).unwrap();
    let spec = |nodes| EmulationSpec {
        nodes: EmulatedNodes::Equal(nodes),
        distances: Some(table.clone()),
    };
    let base = uniform(4, 1, 1, 1);
    assert_eq!(spec(2).emulate(&base).unwrap().distances, table);
    let refused = EmulationError::DistanceTable { rows: 2, nodes: 3 };
    assert_eq!(spec(3).emulate(&base), Err(refused));
}

#[test]
fn attributes_and_tiers_follow_the_physical_node() {
    let mut base = machine(&[2, 0], &[true, true], &[vec![10, 30], vec![30, 10]]);
    base.access = vec![AccessAttributes {
        initiator: NodeId(0),
        target: NodeId(1),
        read_latency_ps: Some(200_000),
        ..AccessAttributes::default()
    }];
    let nodes = [NodeId(1)].into_iter().collect();
    base.tiers = vec![MemoryTier { id: 4, nodes }];
    let machine = emulate(&base, EmulatedNodes::Split(2));
    let pairs: Vec<(u32, u32)> =
        machine.access.iter().map(|access| (access.initiator.0, access.target.0)).collect();
    assert_eq!(pairs, [(0, 2), (0, 3), (1, 2), (1, 3)]);
    assert_eq!(machine.tiers[0].nodes.to_string(), "2,3");
}

#[test]
fn offline_cpus_are_not_assigned() {
    let mut base = uniform(4, 1, 1, 1);
    base.cpus[1].online = false;
    let machine = emulate(&base, EmulatedNodes::Equal(3));
    assert_eq!(cpu_lists(&machine), ["0", "2", "3"]);
}

#[test]
fn a_base_without_memory_gives_the_requested_sizes() {
    let mut base = uniform(2, 1, 1, 1);
    base.ranges.clear();
    base.nodes[0].memory_bytes = 0;
    let machine = emulate(&base, listed(&[(GIB, None), (3 * GIB, None)]));
    assert_eq!(sizes(&machine), [GIB, 3 * GIB]);
    assert!(machine.ranges.is_empty());
}

#[test]
fn requests_that_do_not_fit_are_refused_with_the_numbers() {
    let base = uniform(2, 1, 1, 1);
    let refuse = |nodes| EmulationSpec::new(nodes).emulate(&base).unwrap_err();
    assert_eq!(refuse(EmulatedNodes::Equal(0)), EmulationError::NodeCount { nodes: 0 });
    assert_eq!(
        refuse(listed(&[(9 * GIB, None)])),
        EmulationError::Memory { asked_bytes: 9 * GIB, present_bytes: 8 * GIB }
    );
    assert_eq!(refuse(listed(&[(GIB, Some(3))])), EmulationError::Cpus { asked: 3, present: 2 });
    let overflow = listed(&[(u64::MAX, None), (2, None)]);
    assert!(matches!(refuse(overflow), EmulationError::Memory { asked_bytes: u64::MAX, .. }));
    let nothing = EmulationSpec::new(EmulatedNodes::Split(2)).emulate(&Machine::default());
    assert_eq!(nothing, Err(EmulationError::NothingToSplit));
}

#[test]
fn a_machine_can_be_emulated_to_resemble_another() {
    let rows = [vec![10, 21], vec![21, 10]];
    let model = machine(&[1, 3], &[true, false], &rows);
    let machine = EmulationSpec::like(&model).emulate(&uniform(8, 1, 1, 1)).unwrap();
    assert_eq!(cpu_lists(&machine), ["0", "1-3"]);
    assert_eq!(sizes(&machine), [GIB, 0]);
    assert_eq!(machine.distances, model.distances);
}

#[test]
fn shapes_without_whole_cores_or_nested_groups_are_refused() {
    let shape = |cpus, threads_per_core, packages, l3_groups| UniformMachine {
        cpus,
        threads_per_core,
        packages,
        l3_groups,
        memory_bytes: 0,
    };
    for bad in [shape(3, 2, 1, 1), shape(4, 0, 1, 1), shape(4, 1, 2, 1), shape(4, 2, 1, 3)] {
        assert!(matches!(bad.build(), Err(UniformError::Shape { .. })), "{bad:?}");
    }
    let many = shape(70_000, 1, 1, 1).build();
    assert_eq!(many, Err(UniformError::TooManyCpus { cpus: 70_000 }));
}

#[test]
fn a_uniform_machine_nests_cores_in_l3_groups_in_packages() {
    let machine = uniform(16, 2, 2, 4);
    let groups: Vec<String> =
        machine.l3_groups().iter().map(|group| group.cpus.to_string()).collect();
    assert_eq!(groups, ["0-3", "4-7", "8-11", "12-15"]);
    let threads: Vec<u32> = machine.cpus.iter().map(|cpu: &Cpu| cpu.thread).collect();
    assert_eq!(threads[..4], [0, 1, 0, 1]);
    assert_eq!(machine.packages()[1].cpus.to_string(), "8-15");
}

proptest! {
    #[test]
    fn equal_nodes_lose_no_byte_and_no_cpu_and_differ_little(
        cpus in 1u32..64, nodes in 1usize..80, mib in 1u64..20_000, holes in 1u64..5,
    ) {
        let mut base = uniform(cpus, 1, 1, 1);
        let length = mib << 20;
        base.ranges = (0..holes).map(|hole| range(hole * 3 * length, length, 0)).collect();
        base.nodes[0].memory_bytes = holes * length;
        let machine = emulate(&base, EmulatedNodes::Equal(nodes));
        prop_assert_eq!(machine.memory_bytes(), holes * length);
        prop_assert_eq!(machine.online_cpus(), base.online_cpus());
        let (least, most) = (sizes(&machine).into_iter().min(), sizes(&machine).into_iter().max());
        prop_assert!(most.unwrap() - least.unwrap() <= 2 * (2 << 20));
        let counts: Vec<usize> = machine.nodes.iter().map(|node| node.cpus.len()).collect();
        prop_assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1);
        for range in &machine.ranges {
            let inside = |whole: &&numalab_topology::MemoryRange| {
                whole.base <= range.base && range.end() <= whole.end()
            };
            prop_assert!(base.ranges.iter().any(|whole| inside(&whole)), "{range:?} crosses a hole");
        }
        for node in &machine.nodes {
            let own = machine.ranges.iter().filter(|range| range.node == node.id);
            prop_assert_eq!(own.map(|range| range.length_bytes).sum::<u64>(), node.memory_bytes);
        }
        prop_assert!(machine.validate().iter().all(|finding| finding.severity < Severity::Error));
    }
}
