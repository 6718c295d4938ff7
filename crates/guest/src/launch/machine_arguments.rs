//! A machine as QEMU's arguments: what `numalab-formats` writes, with the memory
//! backends replaced by those that this host is to give.

use std::path::PathBuf;

use numalab_formats::{HostPlacement, WriteError, qemu};
use numalab_topology::{Finding, Machine, Severity};

use super::host_memory::HostMemory;
use crate::qemu::Abilities;

/// What the writer puts before a backend's name and size.
const PLAIN_BACKEND: &str = "memory-backend-ram,";

/// The arguments, and what of the machine QEMU cannot show.
pub struct MachineArguments {
    /// The arguments.
    pub words: Vec<String>,
    /// What is missing or changed.
    pub losses: Vec<Finding>,
}

/// Writes the machine with this memory behind it.
pub fn machine_arguments(
    machine: &Machine,
    memory: &HostMemory,
    abilities: Abilities,
) -> Result<MachineArguments, WriteError> {
    let written = qemu::write(machine, &HostPlacement::default())?;
    let mut words = Vec::new();
    let mut backends = 0;
    for word in written.output {
        let Some(name_and_size) = word.strip_prefix(PLAIN_BACKEND) else {
            words.push(word);
            continue;
        };
        if let Some(context) = memory.thread_context(backends, abilities) {
            words.extend([context, "-object".to_owned()]);
        }
        words.push(memory.backend(backends, name_and_size, abilities));
        backends += 1;
    }
    let mut losses = written.losses;
    losses.extend(unusable_latencies(machine));
    Ok(MachineArguments { words, losses })
}

/// Writes the machine's cpus and the sum of its memory, with these tables: QEMU makes a
/// SRAT, SLIT and HMAT of its own only if it is told of nodes.
pub fn arguments_with_tables(
    machine: &Machine,
    tables: &[PathBuf],
) -> Result<MachineArguments, WriteError> {
    let written = qemu::write(machine, &HostPlacement::default())?.output;
    let mut words = Vec::new();
    for pair in written.chunks(2) {
        if matches!(pair[0].as_str(), "-smp" | "-m") {
            words.extend_from_slice(pair);
        }
    }
    for table in tables {
        let file = table.to_string_lossy().replace(',', ",,");
        words.extend(["-acpitable".to_owned(), format!("file={file}")]);
    }
    let losses = words.get(1).and_then(|smp| gaps_in_apic_ids(smp));
    Ok(MachineArguments { words, losses: losses.into_iter().collect() })
}

/// QEMU gives every level of the topology whole bits of the APIC id (`hw/i386/topology.h`),
/// so that ids have gaps behind a level which is no power of two; tables rarely have them.
fn gaps_in_apic_ids(smp: &str) -> Option<Finding> {
    let of = |level: &str| {
        let count = smp.split(',').find_map(|part| part.strip_prefix(level));
        count.and_then(|count| count.parse().ok()).unwrap_or(1_u32)
    };
    let levels = ["sockets=", "dies=", "cores=", "threads="].map(of);
    let mut several = levels.iter().skip_while(|count| **count == 1).skip(1);
    let uneven = several.find(|count| !count.is_power_of_two())?;
    Some(Finding {
        severity: Severity::Warning,
        code: "apic-id-gaps".to_owned(),
        place: format!("-smp {smp}"),
        message: format!(
            "a level of {uneven} makes QEMU leave out APIC ids: the tables must name its ids"
        ),
    })
}

/// QEMU's HMAT names every node as a target, and Linux gives the whole table up
/// for one without memory ("acpi/hmat: Ignoring: Invalid table").
fn unusable_latencies(machine: &Machine) -> Option<Finding> {
    let empty = machine.nodes.iter().find(|node| node.memory_bytes == 0)?;
    (!machine.access.is_empty()).then(|| Finding {
        severity: Severity::Warning,
        code: "hmat-ignored".to_owned(),
        place: format!("node {}", empty.id),
        message: "has no memory, for which Linux ignores all latencies and bandwidths".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::host_memory::HostPages;
    use super::*;
    use numalab_topology::{AccessAttributes, Cpu, CpuId, Node, NodeId};

    /// Two nodes, the second without cpus.
    fn machine() -> Machine {
        let node = |id: u32, cpus: &str| Node {
            id: NodeId(id),
            online: true,
            memory_bytes: 1 << 30,
            cpus: cpus.parse().unwrap(),
            ..Node::default()
        };
        let cpu = |id: u32| Cpu {
            id: CpuId(id),
            online: true,
            node: Some(NodeId(0)),
            package: Some(0),
            core: Some(id),
            l3_group: Some(0),
            ..Cpu::default()
        };
        Machine {
            nodes: vec![node(0, "0-1"), node(1, "")],
            cpus: vec![cpu(0), cpu(1)],
            ..Machine::default()
        }
    }

    #[test]
    fn plain_memory_gives_the_writers_own_words() {
        let plain = HostMemory::default();
        let ours = machine_arguments(&machine(), &plain, Abilities::default()).unwrap();
        let theirs = qemu::write(&machine(), &HostPlacement::default()).unwrap();
        assert_eq!(ours.words, theirs.output);
        assert!(ours.words.iter().any(|word| word.starts_with(PLAIN_BACKEND)), "{:?}", ours.words);
    }

    #[test]
    fn tables_take_the_place_of_what_qemu_is_told_of_nodes() {
        let tables = [PathBuf::from("/a,b/SRAT.bin")];
        let words = arguments_with_tables(&machine(), &tables).unwrap().words;
        let expected = [
            "-smp",
            "2,sockets=1,cores=2,threads=1",
            "-m",
            "2048M",
            "-acpitable",
            "file=/a,,b/SRAT.bin",
        ];
        assert_eq!(words, expected);
    }

    #[test]
    fn apic_ids_have_gaps_behind_a_level_that_is_no_power_of_two() {
        for whole in [
            "6,sockets=1,cores=6,threads=1",
            "6,sockets=3,cores=2,threads=1",
            "24,sockets=3,dies=2,cores=2,threads=2",
        ] {
            assert_eq!(gaps_in_apic_ids(whole), None, "{whole}");
        }
        for uneven in ["6,sockets=2,cores=3,threads=1", "12,sockets=2,dies=3,cores=2,threads=1"] {
            assert!(gaps_in_apic_ids(uneven).is_some(), "{uneven}");
        }
    }

    #[test]
    fn latencies_beside_a_node_without_memory_are_a_loss() {
        let mut machine = machine();
        machine.access =
            vec![AccessAttributes { read_latency_ps: Some(80_000), ..AccessAttributes::default() }];
        let codes = |machine: &Machine| {
            let memory = HostMemory::default();
            let losses = machine_arguments(machine, &memory, Abilities::default()).unwrap().losses;
            losses.into_iter().map(|loss| loss.code).collect::<Vec<_>>()
        };
        assert!(!codes(&machine).contains(&"hmat-ignored".to_owned()));
        machine.nodes[1].memory_bytes = 0;
        assert!(codes(&machine).contains(&"hmat-ignored".to_owned()));
    }

    #[test]
    fn each_backend_gets_its_own_host_nodes() {
        let memory = HostMemory {
            pages: HostPages::Huge { page_bytes: 1 << 30 },
            nodes: vec!["0".parse().unwrap(), "1,3".parse().unwrap()],
            prealloc: true,
            unreserved: false,
        };
        let abilities = Abilities { prealloc_context: true, ..Abilities::default() };
        let words = machine_arguments(&machine(), &memory, abilities).unwrap().words;
        let objects: Vec<&str> = words
            .windows(2)
            .filter(|pair| pair[0] == "-object")
            .map(|pair| pair[1].as_str())
            .collect();
        let expected = [
            "thread-context,id=touch0,node-affinity=0",
            "memory-backend-memfd,hugetlb=on,hugetlbsize=1073741824,id=ram0,size=1024M,\
             host-nodes=0,policy=bind,prealloc=on,prealloc-context=touch0",
            "thread-context,id=touch1,node-affinity=1,node-affinity=3",
            "memory-backend-memfd,hugetlb=on,hugetlbsize=1073741824,id=ram1,size=1024M,\
             host-nodes=1,host-nodes=3,policy=bind,prealloc=on,prealloc-context=touch1",
        ];
        assert_eq!(objects, expected);
    }
}
