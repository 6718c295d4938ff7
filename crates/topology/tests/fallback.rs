//! Fallback orders: those of real kernels, and an oracle.

mod any_machine;
mod machines;

use any_machine::any_machine;
use machines::machine;
use numalab_topology::{Machine, NodeId};
use proptest::prelude::*;

fn orders(machine: &Machine) -> Vec<Vec<u32>> {
    let orders = machine.fallback_orders().into_iter();
    orders.map(|entry| entry.order.into_iter().map(|node| node.0).collect()).collect()
}

/// Checks a boot of Linux 6.1.192 (x86, QEMU): distances above the diagonal, cpus of each node, and
/// the kernel's "Fallback order for Node" lines.
fn check_boot(cpus: &[u32], distance: impl Fn(usize, usize) -> u8, kernel: &[&[u32]]) {
    let nodes = cpus.len();
    let entry = |from: usize, to: usize| match from == to {
        true => 10,
        false => distance(from.min(to), from.max(to)),
    };
    let rows: Vec<Vec<u8>> =
        (0..nodes).map(|from| (0..nodes).map(|to| entry(from, to)).collect()).collect();
    let machine = machine(cpus, &vec![true; nodes], &rows);
    assert_eq!(orders(&machine), kernel);
}

#[test]
fn two_nodes_fall_back_to_each_other_as_in_a_booted_kernel() {
    check_boot(&[1, 1], |_, _| 20, &[&[0, 1], &[1, 0]]);
}

#[test]
fn two_packages_of_two_nodes_are_ordered_as_in_a_booted_kernel() {
    let distance = |from: usize, to: usize| if from / 2 == to / 2 { 12 } else { 32 };
    let kernel: &[&[u32]] = &[&[0, 1, 2, 3], &[1, 0, 3, 2], &[2, 3, 0, 1], &[3, 2, 1, 0]];
    check_boot(&[1; 4], distance, kernel);
}

#[test]
fn two_packages_of_four_nodes_spread_load_as_in_a_booted_kernel() {
    let distance = |from: usize, to: usize| if from / 4 == to / 4 { 12 } else { 32 };
    let kernel: &[&[u32]] = &[
        &[0, 1, 2, 3, 4, 5, 6, 7],
        &[1, 2, 3, 0, 5, 6, 7, 4],
        &[2, 3, 0, 1, 6, 7, 4, 5],
        &[3, 0, 1, 2, 7, 4, 5, 6],
        &[4, 5, 6, 7, 0, 1, 2, 3],
        &[5, 6, 7, 4, 1, 2, 3, 0],
        &[6, 7, 4, 5, 2, 3, 0, 1],
        &[7, 4, 5, 6, 3, 0, 1, 2],
    ];
    check_boot(&[1; 8], distance, kernel);
}

#[test]
fn memory_only_nodes_are_ordered_as_in_a_booted_kernel() {
    let distance = |from, to| match (from, to) {
        (0, 3) | (1, 2) => 24,
        (2, 3) => 26,
        _ => 21,
    };
    let kernel: &[&[u32]] = &[&[0, 1, 2, 3], &[1, 3, 0, 2], &[2, 0, 1, 3], &[3, 1, 0, 2]];
    check_boot(&[1, 1, 0, 0], distance, kernel);
}

#[test]
fn six_equally_distant_nodes_rotate_as_in_a_booted_kernel() {
    let kernel: &[&[u32]] = &[
        &[0, 1, 2, 3, 4, 5],
        &[1, 2, 3, 4, 5, 0],
        &[2, 3, 4, 5, 0, 1],
        &[3, 4, 5, 0, 1, 2],
        &[4, 5, 0, 1, 2, 3],
        &[5, 0, 1, 2, 3, 4],
    ];
    check_boot(&[1, 1, 1, 0, 0, 0], |_, _| 20, kernel);
}

#[test]
fn a_node_without_memory_is_in_no_order_but_has_one() {
    let rows = [vec![10, 30, 20], vec![30, 10, 20], vec![20, 20, 10]];
    let machine = machine(&[1, 1, 1], &[true, false, true], &rows);
    assert_eq!(orders(&machine), [vec![0, 2], vec![2, 0], vec![2, 0]]);
}

#[test]
fn unknown_distances_count_as_twenty_and_offline_nodes_are_ignored() {
    let mut machine = machine(&[1, 1, 1], &[true; 3], &[vec![10; 3], vec![10; 3], vec![10; 3]]);
    machine.distances = numalab_topology::Distances::unknown(3);
    machine.distances.set(0, 2, 15);
    machine.nodes[1].online = false;
    let orders = machine.fallback_orders();
    assert_eq!(orders.len(), 2);
    assert_eq!(orders[0].order, [NodeId(0), NodeId(2)]);
    assert_eq!(orders[1].node, NodeId(2));
}

/// Finds every next node by comparing one number per candidate, as the kernel combines its criteria
/// into an integer.
fn oracle(machine: &Machine) -> Vec<Vec<u32>> {
    let count = machine.nodes.len();
    let mut load = vec![0u64; count];
    let mut result = Vec::new();
    for asking in 0..count {
        let mut used = vec![false; count];
        let mut order = Vec::new();
        let mut group = 10;
        loop {
            let mut best: Option<(u64, usize)> = None;
            for node in 0..count {
                if used[node] || machine.nodes[node].memory_bytes == 0 {
                    continue;
                }
                let distance = u64::from(machine.distances.get(asking, node).unwrap());
                let mut value = distance;
                if node < asking {
                    value += 1;
                }
                value = if node == asking { 0 } else { value * 1_000 + load[node] };
                if best.is_none_or(|(least, _)| value < least) {
                    best = Some((value, node));
                }
            }
            let Some((_, node)) = best else { break };
            used[node] = true;
            let distance = machine.distances.get(asking, node).unwrap();
            load[node] += u64::from(distance != group);
            group = distance;
            order.push(u32::try_from(node).unwrap());
        }
        result.push(order);
    }
    result
}

proptest! {
    #[test]
    fn orders_agree_with_the_oracle_on_any_machine(machine in any_machine()) {
        prop_assert_eq!(orders(&machine), oracle(&machine));
    }

    #[test]
    fn every_order_holds_every_memory_node_once_and_its_own_first(machine in any_machine()) {
        let memory: Vec<NodeId> = machine.memory_nodes().iter().collect();
        for entry in machine.fallback_orders() {
            let mut sorted = entry.order.clone();
            sorted.sort();
            prop_assert_eq!(&sorted, &memory);
            if memory.contains(&entry.node) {
                prop_assert_eq!(entry.order[0], entry.node);
            }
        }
    }
}
