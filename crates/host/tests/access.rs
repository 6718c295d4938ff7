//! Reads access attributes of firmware and kernel from trees of files.

mod tree;

use std::path::Path;

use numalab_host::{MachineReading, Root, read_machine};
use numalab_topology::AccessClass;
use tree::write;

const CPU: &str = "sys/devices/system/cpu";
const NODE: &str = "sys/devices/system/node";

/// Writes a machine with a cpu on each of nodes 0 and 1, and CXL memory on nodes 2 and 3: node 2 is
/// nearer to node 1, node 3 equally far from both.
fn machine(top: &Path) {
    write(top, &format!("{CPU}/online"), "0-1");
    write(top, &format!("{NODE}/online"), "0-3");
    let rows = ["10 21 24 30", "21 10 14 30", "24 14 10 30", "30 30 30 10"];
    for (node, row) in rows.iter().enumerate() {
        let cpus = if node < 2 { node.to_string() } else { String::new() };
        write(top, &format!("{NODE}/node{node}/cpulist"), cpus);
        write(top, &format!("{NODE}/node{node}/distance"), row);
        let meminfo = format!("Node {node} MemTotal: 1024 kB\n");
        write(top, &format!("{NODE}/node{node}/meminfo"), meminfo);
    }
    for cpu in 0..2 {
        write(top, &format!("{CPU}/cpu{cpu}/topology/core_cpus_list"), cpu.to_string());
    }
}

fn figures(top: &Path, node: u32, class: &str) {
    let directory = format!("{NODE}/node{node}/{class}/initiators");
    write(top, &format!("{directory}/read_latency"), "311");
    write(top, &format!("{directory}/read_bandwidth"), "25000");
}

fn read(top: &Path) -> (Vec<(u32, u32, AccessClass)>, Vec<String>) {
    let MachineReading { machine, findings } = read_machine(&Root::at(top)).expect("a machine");
    assert!(machine.access.iter().all(|access| access.read_latency_ps == Some(311_000)
        && access.read_bandwidth_mb_per_s == Some(25_000)
        && access.write_latency_ps.is_none()));
    let pair = |access: &numalab_topology::AccessAttributes| {
        (access.initiator.0, access.target.0, access.class)
    };
    let access = machine.access.iter().map(pair).collect();
    (access, findings.iter().map(ToString::to_string).collect())
}

#[test]
fn figures_without_an_initiator_are_from_the_nearest_cpus_and_reported() {
    let top = tempfile::tempdir().expect("made");
    machine(top.path());
    figures(top.path(), 2, "access0");
    figures(top.path(), 2, "access1");
    figures(top.path(), 3, "access1");
    let (access, findings) = read(top.path());
    let expected = [
        (1, 2, AccessClass::Any),
        (1, 2, AccessClass::Cpu),
        (0, 3, AccessClass::Cpu),
        (1, 3, AccessClass::Cpu),
    ];
    assert_eq!(access, expected);
    let said = |targets: &str, initiators: &str| {
        format!(
            "note: sys/devices/system/node: the access figures of node {targets} name no \
             initiator: assumed to be from node {initiators}, the nearest with \
             cpus [access-without-initiator]"
        )
    };
    assert_eq!(findings, [said("3", "0,1"), said("2", "1")]);
}

#[test]
fn a_linked_initiator_wins_over_a_nearer_node() {
    let top = tempfile::tempdir().expect("made");
    machine(top.path());
    figures(top.path(), 2, "access0");
    write(top.path(), &format!("{NODE}/node2/access0/initiators/node0/cpulist"), "0");
    let (access, findings) = read(top.path());
    assert_eq!(access, [(0, 2, AccessClass::Any)]);
    assert_eq!(findings, Vec::<String>::new());
}

#[test]
fn a_node_with_cpus_is_its_own_initiator() {
    let top = tempfile::tempdir().expect("made");
    machine(top.path());
    figures(top.path(), 1, "access1");
    assert_eq!(read(top.path()).0, [(1, 1, AccessClass::Cpu)]);
}
