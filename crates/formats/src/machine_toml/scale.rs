//! Scaling of a machine to fewer cpus and less memory, with the same nodes.

use std::collections::BTreeMap;

use numalab_topology::{Cpu, CpuId, CpuSet, Machine, Node};

const MIB: u64 = 1 << 20;
/// Minimum memory in bytes of a node that has any.
const LEAST_BYTES: u64 = 128 * MIB;

/// Returns the machine with at most `cpus_per_node` cpus on each node, spread over its L3 groups
/// and cores, and with the nodes' memory in proportion, `memory_bytes` in total. Cpus are
/// renumbered by node; ranges, free memory, huge pages and devices are left out.
pub fn scaled(machine: &Machine, cpus_per_node: usize, memory_bytes: u64) -> Machine {
    let nodes: Vec<&Node> = machine.nodes.iter().filter(|node| node.online).collect();
    let with_own = nodes.iter().filter(|node| machine.first_with_cpus_of(node).is_none());
    let kept = with_own.flat_map(|node| spread(machine, node, cpus_per_node));
    let renumbered: BTreeMap<CpuId, CpuId> = kept.zip((0..).map(CpuId)).collect();
    let moved = |set: &CpuSet| -> CpuSet {
        set.iter().filter_map(|id| renumbered.get(&id).copied()).collect()
    };
    let mut cpus: Vec<Cpu> = machine
        .cpus
        .iter()
        .filter_map(|cpu| {
            let id = *renumbered.get(&cpu.id)?;
            Some(Cpu { id, apic_id: None, ..cpu.clone() })
        })
        .collect();
    cpus.sort_by_key(|cpu| cpu.id);
    let all_bytes: u64 = nodes.iter().map(|node| node.memory_bytes).sum();
    let share = |bytes: u64| {
        let share = u128::from(bytes) * u128::from(memory_bytes) / u128::from(all_bytes.max(1));
        let share = u64::try_from(share).unwrap_or(u64::MAX) / MIB * MIB;
        if bytes == 0 { 0 } else { share.clamp(LEAST_BYTES.min(bytes), bytes) }
    };
    let node = |node: &&Node| Node {
        cpus: moved(&node.cpus),
        memory_bytes: share(node.memory_bytes),
        free_bytes: None,
        huge_pages: Vec::new(),
        ..(*node).clone()
    };
    let mut caches = machine.caches.clone();
    caches.iter_mut().for_each(|cache| cache.cpus = moved(&cache.cpus));
    caches.retain(|cache| !cache.cpus.is_empty());
    Machine {
        nodes: nodes.iter().map(node).collect(),
        cpus,
        caches,
        ranges: Vec::new(),
        devices: Vec::new(),
        allowed: None,
        ..machine.clone()
    }
}

/// Returns the cpus to keep of a node, in the order of their new numbers: from each L3 group in
/// turn, a thread of each core before its siblings. A core may have only its second thread.
fn spread(machine: &Machine, node: &Node, most: usize) -> Vec<CpuId> {
    let online = node.cpus.iter().filter_map(|id| machine.cpu(id)).filter(|cpu| cpu.online);
    let (mut of_core, mut seen) = (BTreeMap::new(), BTreeMap::new());
    let mut ranked: Vec<(usize, usize, CpuId)> = online
        .map(|cpu| {
            let thread = cpu.core.map_or(0, |core| counted(&mut of_core, core));
            (thread, counted(&mut seen, (thread, cpu.l3_group)), cpu.id)
        })
        .collect();
    ranked.sort_unstable();
    let mut kept: Vec<CpuId> = ranked.into_iter().take(most).map(|(_, _, id)| id).collect();
    kept.sort_unstable();
    kept
}

/// Returns the number of times that `key` was counted before.
fn counted<K: Ord>(counts: &mut BTreeMap<K, usize>, key: K) -> usize {
    let count = counts.entry(key).or_default();
    *count += 1;
    *count - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallery;
    use crate::machine_toml::read;

    #[test]
    fn a_smaller_machine_keeps_its_nodes_and_spreads_cpus_over_their_l3_groups() {
        let machine = read(gallery::machine("epyc-7763-nps4").unwrap()).unwrap();
        let small = scaled(&machine, 2, 2 << 30);
        assert_eq!(small.nodes.len(), 8);
        assert_eq!(small.nodes[7].cpus.to_string(), "14,15");
        assert_eq!(small.nodes[0].memory_bytes, 256 << 20);
        let groups: Vec<_> = small.cpus.iter().map(|cpu| cpu.l3_group).collect();
        assert_eq!(groups, (0..16).map(Some).collect::<Vec<_>>(), "each has a cpu");
        assert_eq!(small.validate(), []);
        assert_eq!(small.access, machine.access);
    }

    #[test]
    fn a_core_with_its_second_thread_only_comes_before_siblings() {
        let text = "[[node]]\nid = 0\ncpus = \"0-2\"\nmemory = \"4G\"\n\
                    [cores]\n0 = \"0,1\"\n1 = \"2\"\n";
        let mut machine = read(text).unwrap();
        for (cpu, thread) in machine.cpus.iter_mut().zip([0, 1, 1]) {
            cpu.thread = thread;
        }
        let cores: Vec<_> = scaled(&machine, 2, 4 << 30).cpus.iter().map(|cpu| cpu.core).collect();
        assert_eq!(cores, [Some(0), Some(1)]);
    }

    #[test]
    fn a_machine_is_never_scaled_up() {
        let machine = read(gallery::machine("epyc-7763-nps4").unwrap()).unwrap();
        let all = scaled(&machine, usize::MAX, u64::MAX);
        assert_eq!(all.nodes, machine.nodes);
        assert_eq!(all.cpus.len(), 128);
    }
}
