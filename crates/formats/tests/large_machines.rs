//! The largest machine that readers accept, with a different distance in every cell.

use numalab_formats::{numactl, svg};
use numalab_topology::{CpuId, Distances, MAX_NODES, Machine, UniformMachine};

/// The largest drawing of a megabyte of distances, in bytes.
const MOST_BYTES: usize = 32 << 20;

fn largest() -> Machine {
    let cpus = u32::try_from(MAX_NODES).unwrap();
    let shape = UniformMachine {
        cpus,
        threads_per_core: 1,
        packages: 1,
        l3_groups: cpus,
        memory_bytes: 4 << 30,
    };
    let mut machine = shape.build().unwrap();
    let mut nodes = Vec::new();
    for cpu in &mut machine.cpus {
        let mut node = machine.nodes[0].clone();
        node.id.0 = cpu.id.0;
        node.cpus = [CpuId(cpu.id.0)].into_iter().collect();
        cpu.node = Some(node.id);
        nodes.push(node);
    }
    machine.nodes = nodes;
    let distance = |from: usize, to: usize| match from ^ to {
        0 => 10,
        other => u8::try_from(20 + other % 200).unwrap(),
    };
    let row = |from| (0..MAX_NODES).map(|to| distance(from, to)).collect();
    let rows: Vec<Vec<u8>> = (0..MAX_NODES).map(row).collect();
    machine.distances = Distances::from_rows(&rows).unwrap();
    machine
}

#[test]
fn a_drawing_of_a_thousand_nodes_has_a_stroke_of_heat_for_each_distance_and_stays_small() {
    let machine = largest();
    let drawing = svg::write(&machine);
    assert!(drawing.len() < MOST_BYTES, "{} bytes", drawing.len());
    assert_eq!(drawing.matches("<path stroke=").count(), machine.distances.values().len());
    assert!(!drawing.contains(r#"class="value"#));
}

#[test]
fn numactl_of_a_thousand_nodes_reads_back_the_same() {
    let machine = largest();
    let read = numactl::read(&numactl::write(&machine)).unwrap().value;
    assert_eq!(read.distances, machine.distances);
}
