//! Handmade machines.

use numalab_topology::{Cpu, CpuId, Distances, Machine, Node, NodeId};

/// Nodes with the given numbers of cpus, 1 GiB of memory where requested, and these distances.
pub fn machine(cpus: &[u32], has_memory: &[bool], distances: &[Vec<u8>]) -> Machine {
    let mut machine =
        Machine { distances: Distances::from_rows(distances).unwrap(), ..Machine::default() };
    let mut next = 0;
    for (index, (&count, &has_memory)) in cpus.iter().zip(has_memory).enumerate() {
        let id = NodeId(u32::try_from(index).unwrap());
        let own = next..next + count;
        next += count;
        machine.cpus.extend(own.clone().map(|cpu| Cpu {
            id: CpuId(cpu),
            online: true,
            node: Some(id),
            package: Some(id.0),
            core: Some(cpu),
            l3_group: Some(id.0),
            ..Cpu::default()
        }));
        machine.nodes.push(Node {
            id,
            online: true,
            cpus: own.map(CpuId).collect(),
            memory_bytes: if has_memory { 1 << 30 } else { 0 },
            ..Node::default()
        });
    }
    machine
}
