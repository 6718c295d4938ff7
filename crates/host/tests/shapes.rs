//! Trees of machines that sandboxes, hypervisors and boot options make.

mod tree;

use std::path::Path;

use numalab_host::{Reading, Root, read_machine};
use tempfile::TempDir;
use tree::write;

const CPU: &str = "sys/devices/system/cpu";
const NODE: &str = "sys/devices/system/node";

/// Nodes with these cpus and rows of distances; a core for each cpu.
fn machine(nodes: &[(&str, &str)], cpus: u32) -> TempDir {
    let top = tempfile::tempdir().expect("made");
    for (node, (cpus, row)) in nodes.iter().enumerate() {
        let directory = format!("{NODE}/node{node}");
        write(top.path(), &format!("{directory}/cpulist"), cpus);
        write(top.path(), &format!("{directory}/distance"), row);
        let meminfo = format!("Node {node} MemTotal: 2048 kB\n");
        write(top.path(), &format!("{directory}/meminfo"), meminfo);
    }
    write(top.path(), "proc/meminfo", format!("MemTotal: {} kB\n", 2048 * nodes.len()));
    for cpu in 0..cpus {
        let topology = format!("{CPU}/cpu{cpu}/topology/core_cpus_list");
        write(top.path(), &topology, cpu.to_string());
    }
    top
}

fn read(top: &Path) -> Reading {
    read_machine(&Root::at(top)).expect("a machine")
}

fn said(reading: &Reading) -> Vec<String> {
    reading.findings.iter().map(ToString::to_string).collect()
}

#[test]
fn an_l3_group_over_two_nodes_is_noted_once() {
    let top = machine(&[("0-1", "10 20"), ("2-3", "20 10")], 4);
    for cpu in 0..4 {
        let cache = format!("{CPU}/cpu{cpu}/cache/index3");
        for (file, value) in [("level", "3"), ("type", "Unified"), ("shared_cpu_list", "0-3")] {
            write(top.path(), &format!("{cache}/{file}"), value);
        }
    }
    let expected = "note: L3 group 0: its cpus 0-3 lie on nodes 0,1, so its cache is shared across \
                    them [l3-group-spans-nodes]";
    assert_eq!(said(&read(top.path())), [expected]);
}
