//! The guest has the requested machine, and returns all files.

use std::fs;

use numalab_guest::{Guest, HostMemory, Outcome, PinPlan, Pins};
use numalab_guest_agent::Exit;
use numalab_topology::{AccessAttributes, CpuId, CpuSet, Distances, Machine, NodeId};

use crate::lab::{Lab, cpu, four_nodes, node, shell};

const LOOK: &str = r#"
cd /sys/devices/system/node
for n in 0 1 2 3; do
    echo "node $n cpus $(cat node$n/cpulist) distances $(cat node$n/distance)"
    awk '/MemTotal/ { print "node", $2 + 0, ($4 > 150000 && $4 <= 262144) ? "has its memory" : $4 }' node$n/meminfo
done
for c in 0 1 7; do echo "cpu $c package $(cat ../cpu/cpu$c/topology/physical_package_id)"; done
echo "sent: $(cat /data/in.txt), variable: $COLOUR, in $(pwd)"
numactl --cpunodebind=2 --membind=3 numactl --show | grep -E '^(physcpubind|membind)'
mkdir -p /root/results/deep
echo brought back > /root/results/deep/file.txt
head -c 3000000 /dev/zero | tr '\0' x > /root/results/big
echo to errors >&2
sleep 1000 &
exit 7
"#;

const SEEN: &str = "\
node 0 cpus 0-1 distances 10 12 20 22
node 0 has its memory
node 1 cpus 2-3 distances 12 10 22 20
node 1 has its memory
node 2 cpus 4-5 distances 20 22 10 12
node 2 has its memory
node 3 cpus 6-7 distances 22 20 12 10
node 3 has its memory
cpu 0 package 0
cpu 1 package 0
cpu 7 package 3
sent: hello guest, variable: blue, in /sys/devices/system/node
physcpubind: 4 5 
membind: 3 
";

#[test]
fn a_guest_has_the_requested_machine_and_returns_all_files() {
    let Some(lab) = Lab::open() else { return };
    let sent = lab.directory.path().join("in.txt");
    fs::write(&sent, "hello guest").unwrap();
    let results = lab.directory.path().join("results");
    let mut task = shell(LOOK);
    task.job.environment = vec![("COLOUR".to_owned(), "blue".to_owned())];
    task.job.collect = vec!["/root/results".to_owned(), "/no/such/file".to_owned()];
    task.send = vec![(sent, "/data/in.txt".to_owned())];
    task.results = Some(results.clone());
    let ran = lab.run(placed(four_nodes()), &task).unwrap();

    assert_eq!(ran.output, SEEN);
    assert_eq!(ran.errors, "to errors\n");
    assert_eq!(ran.outcome.exit, Exit::Code(7));
    assert_eq!(ran.outcome.complaints.len(), 1, "{:?}", ran.outcome.complaints);
    assert!(ran.outcome.complaints[0].starts_with("/no/such/file: "));
    let file = fs::read_to_string(results.join("root/results/deep/file.txt")).unwrap();
    assert_eq!(file, "brought back\n");
    let big = fs::read(results.join("root/results/big")).unwrap();
    assert!(big.len() == 3_000_000 && big.iter().all(|byte| *byte == b'x'));
    assert_placed(&ran.outcome);
}

/// Returns a guest with memory bound to host node 0, and vCPUs on host cpu 0.
fn placed(machine: Machine) -> Guest {
    let first = CpuSet::from_iter([CpuId(0)]);
    let plan = PinPlan::NodeLists { vcpus: None, lists: vec![first] };
    let pins = Pins { plan, host: Machine::default() };
    let memory =
        HostMemory { nodes: vec![[NodeId(0)].into_iter().collect()], ..HostMemory::default() };
    Guest { machine, memory, pins: Some(pins), ..Guest::default() }
}

fn assert_placed(outcome: &Outcome) {
    let pins = outcome.pins.as_ref().unwrap();
    assert_eq!(pins.vcpus.len(), 8);
    for pinned in &pins.vcpus {
        assert_eq!(pinned.affinity.to_string(), "0");
        assert_eq!(pinned.runs_on, Some(CpuId(0)));
        assert_eq!(pinned.vcpu.node, Some(pinned.vcpu.index / 2));
    }
    let memory = outcome.memory.as_ref().unwrap();
    assert_eq!(memory.len(), 4, "{memory:?}");
    for proof in memory {
        assert_eq!(proof.policies, ["bind:0"], "{proof:?}");
        let nodes: Vec<_> = proof.bytes_by_node.keys().collect();
        assert_eq!(nodes, [&NodeId(0)], "{proof:?}");
        assert_eq!(proof.block.size_bytes, 256 << 20);
    }
    let present: u64 = memory.iter().flat_map(|proof| proof.bytes_by_node.values()).sum();
    assert!(present > 50 << 20, "the kernel alone touches that much: {present}");
}

/// Returns a machine in which node 1 has no memory and node 2 no cpus.
fn uneven_machine() -> Machine {
    Machine {
        nodes: vec![node(0, "0-1", 512), node(1, "2-3", 0), node(2, "", 256)],
        cpus: (0..4).map(|id| cpu(id, id / 2)).collect(),
        distances: Distances::uniform(3, 20),
        ..Machine::default()
    }
}

/// Returns the same machine with memory on every node, and with latencies (HMAT).
fn machine_with_latencies() -> Machine {
    let access = |initiator, target, nanoseconds: u64| AccessAttributes {
        initiator: NodeId(initiator),
        target: NodeId(target),
        read_latency_ps: Some(nanoseconds * 1000),
        write_latency_ps: Some(nanoseconds * 1000),
        read_bandwidth_mb_per_s: Some(20_000),
        write_bandwidth_mb_per_s: Some(20_000),
        ..AccessAttributes::default()
    };
    let mut machine = uneven_machine();
    machine.nodes[1].memory_bytes = 256 << 20;
    // Node 2 is nearest to node 1.
    machine.distances.set(1, 2, 15);
    machine.distances.set(2, 1, 15);
    machine.access = vec![
        access(0, 0, 80),
        access(0, 1, 140),
        access(0, 2, 300),
        access(1, 0, 140),
        access(1, 1, 80),
        access(1, 2, 200),
    ];
    machine
}

#[test]
fn nodes_without_memory_or_cpus_and_latencies_reach_the_guest() {
    let Some(lab) = Lab::open() else { return };
    let with = |machine| Guest { machine, ..Guest::default() };
    let uneven = shell("cd /sys/devices/system/node; cat online has_memory has_cpu node1/cpulist");
    let ran = lab.run(with(uneven_machine()), &uneven).unwrap();
    assert_eq!(ran.output, "0-2\n0,2\n0-1\n2-3\n", "{}", ran.errors);

    let latencies = shell(
        "cd /sys/devices/system/node; cat has_cpu node2/access0/initiators/read_latency
        ls node2/access0/initiators | grep node; cat node0/access0/initiators/read_latency",
    );
    let ran = lab.run(with(machine_with_latencies()), &latencies).unwrap();
    assert_eq!(ran.output, "0-1\n200\nnode1\n80\n", "{}", ran.errors);
}

#[test]
fn a_second_image_of_the_same_contents_is_not_built_again() {
    let Some(lab) = Lab::open() else { return };
    let before = fs::metadata(lab.files.initramfs.as_ref().unwrap()).unwrap().modified().unwrap();
    drop(lab);
    let Some(lab) = Lab::open() else { return };
    let after = fs::metadata(lab.files.initramfs.as_ref().unwrap()).unwrap().modified().unwrap();
    assert_eq!(before, after);
}
