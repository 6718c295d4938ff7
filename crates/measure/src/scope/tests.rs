use numalab_topology::{CpuSet, Distances, NodeSet};

use super::*;
use crate::test_machines::{allowed, machine, whole, with_memory_alone};

fn cpus(text: &str) -> Option<CpuSet> {
    Some(text.parse().unwrap())
}

fn nodes(text: &str) -> Option<NodeSet> {
    Some(text.parse().unwrap())
}

fn chosen(machine: &Machine, cpus: Option<CpuSet>, nodes: Option<NodeSet>) -> (String, String) {
    let scope = Scope::new(machine, cpus.as_ref(), nodes.as_ref()).unwrap();
    let cpus: CpuSet = scope.cpus.into_iter().collect();
    let nodes: NodeSet = scope.nodes.into_iter().collect();
    (cpus.to_string(), nodes.to_string())
}

fn refused(machine: &Machine, cpus: Option<CpuSet>, nodes: Option<NodeSet>) -> String {
    Scope::new(machine, cpus.as_ref(), nodes.as_ref()).unwrap_err().to_string()
}

fn pair(cpus: &str, nodes: &str) -> (String, String) {
    (cpus.to_owned(), nodes.to_owned())
}

#[test]
fn without_a_choice_everything_that_is_online_and_allowed_is_in_scope() {
    assert_eq!(chosen(&machine(2, 2), None, None), pair("0-7", "0,1"));
    let mut part = allowed(machine(2, 2), "1-3,7", "1");
    assert_eq!(chosen(&part, None, None), pair("1-3,7", "1"));
    part.cpus[2].online = false;
    assert_eq!(chosen(&part, None, None), pair("1,3,7", "1"));
}

#[test]
fn a_choice_is_taken_unchanged() {
    assert_eq!(chosen(&machine(2, 2), cpus("6,1"), nodes("1")), pair("1,6", "1"));
    assert_eq!(chosen(&with_memory_alone(machine(1, 1)), None, nodes("1")), pair("0,1", "1"));
}

#[test]
fn each_cpu_that_cannot_be_used_is_refused_with_those_that_can() {
    let mut machine = allowed(machine(2, 2), "0-2,4-7", "0-1");
    machine.cpus[5].online = false;
    let message = |text| refused(&machine, cpus(text), None);
    assert_eq!(message("0,9"), "cpu 9 does not exist here: expected one of 0-4,6,7");
    assert_eq!(message("5"), "cpu 5 is offline: expected one of 0-4,6,7");
    assert_eq!(
        message("3"),
        "cpu 3 is not allowed for this process (affinity or cpuset): expected one of 0-2,4-7"
    );
}

#[test]
fn isolated_cpus_are_in_scope_where_they_are_named_and_only_there() {
    let mut machine = allowed(machine(2, 2), "0-1", "0-1");
    machine.allowed.as_mut().unwrap().isolated = "2-5".parse().unwrap();
    assert_eq!(chosen(&machine, None, None), pair("0,1", "0,1"));
    assert_eq!(chosen(&machine, cpus("1,4"), None), pair("1,4", "0,1"));
    let message = refused(&machine, cpus("6"), None);
    assert!(message.starts_with("cpu 6 is not allowed for this process"), "{message}");
}

#[test]
fn each_node_that_cannot_be_used_is_refused_with_those_that_can() {
    let mut machine = allowed(machine(3, 1), "0-5", "0-1");
    machine.nodes[1].memory_bytes = 0;
    let message = |text| refused(&machine, None, nodes(text));
    assert_eq!(message("7"), "node 7 does not exist here: expected one of 0-2");
    assert_eq!(message("1"), "node 1 has no memory: expected one of 0,2");
    assert_eq!(
        message("2"),
        "node 2 is not allowed for this process (cpuset.mems): expected one of 0,1"
    );
    machine.nodes[0].online = false;
    assert_eq!(
        refused(&machine, None, nodes("0")),
        format!("node 0 has no memory: expected one of {}", machine.memory_nodes())
    );
}

#[test]
fn all_nodes_may_be_used_if_the_kernel_does_not_tell_which() {
    let machine = allowed(machine(2, 1), "0-1", "");
    assert_eq!(chosen(&machine, None, None), pair("0,1", "0,1"));
    assert_eq!(chosen(&machine, None, nodes("1")), pair("0,1", "1"));
}

#[test]
fn nothing_to_measure_with_is_refused() {
    let none = allowed(machine(1, 1), "8", "0");
    assert_eq!(refused(&none, None, None), "no cpu is left to measure with");
    let none = allowed(machine(1, 1), "0", "8");
    assert_eq!(refused(&none, None, None), "no node with memory is left to measure with");
    let empty = CpuSet::new();
    assert_eq!(refused(&machine(1, 1), Some(empty), None), "no cpu is left to measure with");
}

#[test]
fn the_nearest_node_is_the_cpus_own_or_the_one_at_the_smallest_distance() {
    let machine = machine(3, 1);
    let nearest = |nodes: &str, cpu| {
        let nodes: NodeSet = nodes.parse().unwrap();
        Scope::new(&machine, None, Some(&nodes)).unwrap().nearest_node(&machine, CpuId(cpu))
    };
    assert_eq!(nearest("0-2", 1), NodeId(1));
    assert_eq!(nearest("0-1", 2), NodeId(1), "21 away, the other one 22");
    assert_eq!(nearest("0,2", 1), NodeId(0), "as far, and the first");
    assert_eq!(nearest("1-2", 77), NodeId(1), "of a cpu that is not there, the first");
    let mut without = machine.clone();
    without.distances = Distances::default();
    assert_eq!(whole(&without).nearest_node(&without, CpuId(2)), NodeId(2));
}

#[test]
fn one_cpu_represents_each_core_and_node() {
    let machine = machine(2, 2);
    let scope = whole(&machine);
    let ids = |cpus: Vec<CpuId>| cpus.into_iter().map(|cpu| cpu.0).collect::<Vec<_>>();
    assert_eq!(ids(scope.one_cpu_per_core(&machine)), [0, 1, 2, 3]);
    assert_eq!(ids(scope.one_cpu_per_node(&machine)), [0, 2]);
    let second = cpus("5-7");
    let scope = Scope::new(&machine, second.as_ref(), None).unwrap();
    assert_eq!(ids(scope.one_cpu_per_core(&machine)), [5, 6, 7], "the sibling that is in scope");
    assert_eq!(ids(scope.one_cpu_per_node(&machine)), [5, 6]);
}

#[test]
fn cpus_without_a_known_core_represent_themselves() {
    let mut machine = machine(1, 2);
    machine.cpus.iter_mut().for_each(|cpu| cpu.core = None);
    assert_eq!(whole(&machine).one_cpu_per_core(&machine).len(), 4);
}

#[test]
fn two_cpus_of_each_l3_group_are_of_different_cores() {
    let machine = machine(2, 3);
    let both = whole(&machine).two_cpus_per_l3_group(&machine);
    assert_eq!(both, [0, 1, 3, 4].map(CpuId));
    let one_core = crate::test_machines::machine(2, 1);
    let both = whole(&one_core).two_cpus_per_l3_group(&one_core);
    assert_eq!(both, [0, 1].map(CpuId), "a group of one core has one");
}

#[test]
fn an_l3_group_that_spans_nodes_gives_two_cpus_of_each_node() {
    let mut machine = machine(2, 3);
    machine.cpus.iter_mut().for_each(|cpu| cpu.l3_group = Some(0));
    let both = whole(&machine).two_cpus_per_l3_group(&machine);
    assert_eq!(both, [0, 1, 3, 4].map(CpuId));
}

#[test]
fn workers_of_all_cores_are_on_the_memory_nearest_to_them() {
    let machine = machine(2, 2);
    let found = |scope: &Scope| -> Vec<(u32, u32)> {
        all_workers(&machine, scope).iter().map(|of| (of.cpu.0, of.node.0)).collect()
    };
    assert_eq!(found(&whole(&machine)), [(0, 0), (1, 0), (2, 1), (3, 1)]);
    let scope = Scope::new(&machine, None, nodes("1").as_ref()).unwrap();
    assert_eq!(found(&scope), [(0, 1), (1, 1), (2, 1), (3, 1)]);
}

#[test]
fn a_matrix_goes_through_nodes_and_for_each_through_cpus() {
    let machine = machine(2, 1);
    let found = |shape| -> Vec<(u32, u32)> {
        let workers = matrix_workers(&machine, &whole(&machine), shape);
        workers.iter().map(|of| (of.cpu.0, of.node.0)).collect()
    };
    let per_cpu = [(0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (1, 1), (2, 1), (3, 1)];
    assert_eq!(found(MatrixShape::PerCpu), per_cpu);
    assert_eq!(found(MatrixShape::PerNode), [(0, 0), (1, 0), (0, 1), (1, 1)]);
    assert_eq!(MatrixShape::default(), MatrixShape::PerCpu);
}

#[test]
fn memory_without_cpus_is_local_to_no_cpu_while_there_is_other_memory() {
    let mut near = with_memory_alone(machine(2, 1));
    near.nodes[1].memory_bytes = 0;
    near.distances =
        Distances::from_rows(&[vec![10, 40, 30], vec![40, 10, 20], vec![30, 20, 10]]).unwrap();
    let of_cpu = |nodes: Option<NodeSet>| {
        let scope = Scope::new(&near, None, nodes.as_ref()).unwrap();
        scope.nearest_node(&near, near.nodes[1].cpus.first().unwrap()).0
    };
    assert_eq!(of_cpu(None), 0);
    assert_eq!(of_cpu(nodes("2")), 2, "named");
}
