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

#[test]
fn where_only_cpuinfo_can_be_read_cpus_cores_and_packages_are_its() {
    let top = tempfile::tempdir().expect("made");
    let entry = |cpu: u32| {
        let (package, core) = (cpu % 2, cpu / 2 % 2);
        format!("processor : {cpu}\nphysical id : {package}\ncore id : {core}\n\n")
    };
    write(top.path(), "proc/cpuinfo", (0..8).map(entry).collect::<String>());
    write(top.path(), "proc/meminfo", "MemTotal: 4096 kB\n");
    let reading = read(top.path());
    assert_eq!(
        said(&reading),
        [
            "warning: sys/devices/system/cpu: no cpu directories: cpus, cores and packages are those \
             of proc/cpuinfo; caches and nodes are unknown [no-cpu-directories]",
            "note: sys/devices/system/node: no node directories: the machine is taken as one node \
             [no-nodes]"
        ]
    );
    let machine = reading.machine;
    assert_eq!((machine.cpus.len(), machine.packages().len(), machine.cores().len()), (8, 2, 4));
    assert_eq!(machine.cores()[0].cpus.to_string(), "0,4");
    assert_eq!(machine.nodes[0].cpus.to_string(), "0-7");
    assert_eq!(machine.nodes[0].memory_bytes, 4 << 20);
}
