//! Machines for tests of plans, independent of the machine that runs them.

use numalab_record::{Cell, Environment, Kind, Run};
use numalab_topology::{Allowed, Cpu, CpuId, Distances, Machine, Node, NodeId};

use crate::scope::Scope;

const GIB: u64 = 1 << 30;

/// Nodes of 16 GiB with `cores_per_node` cores of two threads each; the cores of a node form one L3
/// group. The first threads of all cores are numbered before the second ones, so that cpus 0 and 1
/// are the first threads of cores 0 and 1 of node 0.
pub(crate) fn machine(nodes: u32, cores_per_node: u32) -> Machine {
    let cores = nodes * cores_per_node;
    let cpu = |id: u32| {
        let core = id % cores;
        let node = core / cores_per_node;
        Cpu {
            id: CpuId(id),
            online: true,
            node: Some(NodeId(node)),
            package: Some(node),
            core: Some(core),
            thread: id / cores,
            l3_group: Some(node),
            apic_id: None,
        }
    };
    let cpus: Vec<Cpu> = (0..2 * cores).map(cpu).collect();
    let node = |id: u32| Node {
        id: NodeId(id),
        online: true,
        cpus: cpus.iter().filter(|cpu| cpu.node == Some(NodeId(id))).map(|cpu| cpu.id).collect(),
        memory_bytes: 16 * GIB,
        ..Node::default()
    };
    let distance = |from: u32, to: u32| match from.abs_diff(to) {
        0 => 10,
        apart => 20 + u8::try_from(apart).expect("few nodes"),
    };
    let row = |from| (0..nodes).map(|to| distance(from, to)).collect::<Vec<u8>>();
    let rows: Vec<Vec<u8>> = (0..nodes).map(row).collect();
    Machine {
        nodes: (0..nodes).map(node).collect(),
        distances: Distances::from_rows(&rows).expect("a square"),
        cpus,
        ..Machine::default()
    }
}

/// Adds a node with memory and no cpus.
pub(crate) fn with_memory_alone(mut machine: Machine) -> Machine {
    let id = NodeId(u32::try_from(machine.nodes.len()).expect("few nodes"));
    let memory_bytes = 64 * GIB;
    machine.nodes.push(Node { id, online: true, memory_bytes, ..Node::default() });
    machine
}

pub(crate) fn allowed(machine: Machine, cpus: &str, nodes: &str) -> Machine {
    let (cpus, memory_nodes) = (cpus.parse().expect("cpus"), nodes.parse().expect("nodes"));
    Machine { allowed: Some(Allowed { cpus, memory_nodes, ..Allowed::default() }), ..machine }
}

pub(crate) fn whole(machine: &Machine) -> Scope {
    Scope::new(machine, None, None).expect("all of it")
}

pub(crate) fn ids(cells: &[Cell]) -> Vec<&str> {
    cells.iter().map(|cell| cell.id.0.as_str()).collect()
}

/// Creates a run of a plan before its first sample.
pub(crate) fn run(machine: Machine, plan: Vec<Cell>) -> Run {
    Run {
        schema: Kind::Run.into(),
        name: "measure".to_owned(),
        label: None,
        version: "0".to_owned(),
        command: vec!["numalab".to_owned()],
        started_unix_ms: 0,
        seed: 7,
        precision: 0.01,
        budget_ns: 1,
        environment: Environment::default(),
        machine,
        survey: None,
        launch: None,
        plan,
    }
}
