//! A machine as QEMU's arguments, with the host memory behind it.

use std::path::PathBuf;

use numalab_formats::WriteError;
use numalab_formats::qemu::{self, Smp};
use numalab_topology::{Finding, Machine, Severity};

use super::host_memory::HostMemory;
use crate::board::Board;
use crate::qemu::Abilities;
use numalab_image::Architecture;

/// The arguments, and the parts of the machine that QEMU cannot show.
pub struct MachineArguments {
    pub words: Vec<String>,
    pub losses: Vec<Finding>,
}

/// Writes the machine with this memory behind it.
pub fn machine_arguments(
    machine: &Machine,
    memory: &HostMemory,
    architecture: Architecture,
    abilities: Abilities,
) -> Result<MachineArguments, WriteError> {
    let mut written = qemu::describe(machine)?;
    for (index, backend) in written.output.backends_mut().enumerate() {
        memory.give(index, backend, abilities);
    }
    let mut losses = written.losses;
    losses.extend(unusable_latencies(machine));
    let words = Board::of(architecture).levels(written.output.words());
    Ok(MachineArguments { words, losses })
}

/// Writes the machine's cpus and the sum of its memory, with these tables. QEMU generates its own
/// SRAT, SLIT and HMAT only if nodes are configured.
pub fn arguments_with_tables(
    machine: &Machine,
    tables: &[PathBuf],
) -> Result<MachineArguments, WriteError> {
    let described = qemu::describe(machine)?.output;
    if !described.cxl.is_empty() {
        let what = "CXL memory with custom tables".to_owned();
        return Err(WriteError::Inexpressible { format: "a guest", what });
    }
    let mut words = described.size_words();
    for table in tables {
        let file = table.to_string_lossy().replace(',', ",,");
        words.extend(["-acpitable".to_owned(), format!("file={file}")]);
    }
    let losses = gaps_in_apic_ids(&described.smp).into_iter().collect();
    Ok(MachineArguments { words, losses })
}

/// Warns of gaps in APIC ids: QEMU gives every level of the topology whole bits of the id
/// (`hw/i386/topology.h`), so that a level that is not a power of two leaves gaps, which tables
/// rarely have.
fn gaps_in_apic_ids(smp: &Smp) -> Option<Finding> {
    let levels = [smp.sockets, smp.dies, smp.cores, smp.threads];
    // The outermost level may have any count, since no bits of the id are above it.
    let mut several = levels.iter().skip_while(|count| **count == 1).skip(1);
    let uneven = several.find(|count| !count.is_power_of_two())?;
    let message =
        format!("a level of {uneven} makes QEMU skip APIC ids: the tables must use its ids");
    Some(Finding::new(Severity::Warning, "apic-id-gaps", format!("-smp {smp}"), message))
}

/// Warns of unusable latencies: QEMU's HMAT names every node as a target, and Linux rejects the
/// whole table for one without memory ("acpi/hmat: Ignoring: Invalid table").
fn unusable_latencies(machine: &Machine) -> Option<Finding> {
    let empty = machine.nodes.iter().find(|node| node.memory_bytes == 0)?;
    let (place, message) = (
        format!("node {}", empty.id),
        "has no memory, so Linux ignores all latencies and bandwidths",
    );
    (!machine.access.is_empty())
        .then(|| Finding::new(Severity::Warning, "hmat-ignored", place, message))
}

#[cfg(test)]
mod tests {
    use super::super::host_memory::{HostMemory, HostPages};
    use super::*;
    use numalab_topology::{AccessAttributes, CpuSet, Node, NodeId, UniformMachine};

    /// Returns two nodes, the second without cpus.
    fn machine() -> Machine {
        let uniform = UniformMachine::of_packages(1, 2, 1 << 30).build().unwrap();
        let first = uniform.nodes[0].clone();
        let second = Node { id: NodeId(1), cpus: CpuSet::new(), ..first.clone() };
        Machine { nodes: vec![first, second], cpus: uniform.cpus, ..Machine::default() }
    }

    fn on_a_pc(machine: &Machine, memory: &HostMemory, abilities: Abilities) -> MachineArguments {
        machine_arguments(machine, memory, Architecture::X86_64, abilities).unwrap()
    }

    #[test]
    fn plain_memory_adds_nothing_to_the_writers_arguments() {
        let plain = HostMemory::default();
        let ours = on_a_pc(&machine(), &plain, Abilities::default());
        let theirs = qemu::write(&machine()).unwrap();
        assert_eq!(ours.words, theirs.output);
        let backend = "memory-backend-ram,id=ram1,size=1024M".to_owned();
        assert!(ours.words.contains(&backend), "{:?}", ours.words);
    }

    #[test]
    fn tables_replace_the_node_options_of_qemu() {
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
    fn cxl_memory_is_refused_with_custom_tables() {
        let mut machine = machine();
        machine.nodes[1].cxl = true;
        let refused = arguments_with_tables(&machine, &[]).err().unwrap().to_string();
        assert_eq!(refused, "a guest cannot express CXL memory with custom tables");
    }

    #[test]
    fn apic_ids_have_gaps_after_a_level_that_is_not_a_power_of_two() {
        let gaps = |[sockets, dies, cores, threads]: [usize; 4]| {
            let cpus = sockets * dies * cores * threads;
            gaps_in_apic_ids(&Smp { cpus, sockets, dies, cores, threads })
        };
        for whole in [[1, 1, 6, 1], [3, 1, 2, 1], [3, 2, 2, 2]] {
            assert_eq!(gaps(whole), None, "{whole:?}");
        }
        for uneven in [[2, 1, 3, 1], [2, 3, 2, 1]] {
            assert!(gaps(uneven).is_some(), "{uneven:?}");
        }
    }

    #[test]
    fn latencies_are_lost_if_a_node_has_no_memory() {
        let mut machine = machine();
        machine.access =
            vec![AccessAttributes { read_latency_ps: Some(80_000), ..AccessAttributes::default() }];
        let codes = |machine: &Machine| {
            let memory = HostMemory::default();
            let losses = on_a_pc(machine, &memory, Abilities::default()).losses;
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
        let words = on_a_pc(&machine(), &memory, abilities).words;
        let objects: Vec<&str> = words
            .windows(2)
            .filter(|pair| pair[0] == "-object")
            .map(|pair| pair[1].as_str())
            .collect();
        let expected = [
            "thread-context,id=touch0,node-affinity=0",
            "memory-backend-memfd,id=ram0,size=1024M,hugetlb=on,hugetlbsize=1073741824,\
             host-nodes=0,policy=bind,prealloc=on,prealloc-context=touch0",
            "thread-context,id=touch1,node-affinity=1,node-affinity=3",
            "memory-backend-memfd,id=ram1,size=1024M,hugetlb=on,hugetlbsize=1073741824,\
             host-nodes=1,host-nodes=3,policy=bind,prealloc=on,prealloc-context=touch1",
        ];
        assert_eq!(objects, expected);
    }
}
