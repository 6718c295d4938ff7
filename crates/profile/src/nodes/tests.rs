use numalab_topology::NodeId;

use super::*;
use crate::test_records::machine;

#[test]
fn a_cpu_belongs_to_its_node_and_a_later_one_to_the_first() {
    let mut machine = machine(3);
    machine.cpus[5].node = None;
    let nodes = Nodes::of(&machine);
    let of: Vec<u32> = [0, 1, 2, 3, 4, 5, 100].map(|cpu| nodes.of_cpu(cpu)).to_vec();
    assert_eq!(of, [0, 0, 1, 1, 2, 0, 0]);
}

#[test]
fn the_first_node_is_the_first_present_and_not_number_0() {
    let mut machine = machine(3);
    machine.nodes.remove(0);
    assert_eq!(Nodes::of(&machine).of_cpu(100), 1);
    assert_eq!(Nodes::of(&Machine::default()).of_cpu(100), 0);
}

#[test]
fn there_is_no_choice_of_memory_where_one_node_has_some() {
    assert_eq!(Nodes::of(&machine(1)).only(), Some(0));
    assert_eq!(Nodes::of(&machine(2)).only(), None);
    let mut half = machine(2);
    half.nodes[0].memory_bytes = 0;
    assert_eq!(Nodes::of(&half).only(), Some(1));
    assert_eq!(Nodes::of(&Machine::default()).only(), None);
}

#[test]
fn offline_cpus_are_not_followed_and_nodes_are_listed_with_their_cpus() {
    let mut machine = machine(2);
    machine.cpus[2].online = false;
    let nodes = Nodes::of(&machine);
    assert_eq!(nodes.cpus().to_string(), "0,1,3");
    let cpus_by_node: Vec<(NodeId, String)> =
        nodes.all.iter().map(|of| (of.node, of.cpus.to_string())).collect();
    assert_eq!(cpus_by_node, [(NodeId(0), "0,1".to_owned()), (NodeId(1), "2,3".to_owned())]);
}
