//! A guest that was booted for this fixture: four nodes, one without cpus, one without memory.

use std::path::Path;
use std::process::Command;

use numalab_host::{MemoryLimit, Root, huge_page_sizes, read_machine};
use numalab_topology::{HugePagePool, NodeId};

#[test]
fn a_guest_with_a_cpuless_and_a_memoryless_node_is_read_as_it_was_booted() {
    let tarball =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/qemu-4-nodes/tree.tar.gz");
    let top = tempfile::tempdir().unwrap();
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(tarball).arg("-C").arg(top.path());
    assert!(tar.status().unwrap().success());
    let root = Root::at(top.path());
    let reading = read_machine(&root).unwrap();
    assert_eq!(reading.findings, []);
    let machine = reading.machine;

    assert_eq!(machine.online_cpus().to_string(), "0-5");
    assert_eq!((machine.cores().len(), machine.packages().len()), (6, 3));
    assert_eq!(machine.memory_nodes().to_string(), "0,1,3");
    assert_eq!(machine.cpu_nodes().to_string(), "0-2");
    let cpus: Vec<String> = machine.nodes.iter().map(|n| n.cpus.to_string()).collect();
    assert_eq!(cpus, ["0,1", "2,3", "4,5", ""]);
    assert_eq!(machine.nodes[2].memory_bytes, 0);
    assert_eq!(machine.distances.values(), [10, 17, 21, 28, 31]);
    assert_eq!(machine.distance(NodeId(0), NodeId(3)), Some(17));
    assert!(machine.distances.is_complete());
    let pool = HugePagePool { page_bytes: 2 << 20, total: 8, free: 8 };
    assert_eq!(machine.node(NodeId(1)).unwrap().huge_pages[0], pool);
    assert_eq!(machine.tiers[0].nodes.to_string(), "0,1,3");

    let ranges: u64 = machine.ranges.iter().map(|range| range.length_bytes).sum();
    assert_eq!(ranges, 1536 << 20);
    assert_eq!(machine.ranges.len(), 3);
    assert!(huge_page_sizes(&root).is_empty());
    assert!(MemoryLimit::read(&root).unwrap().node_figures_agree());
}
