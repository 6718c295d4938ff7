//! The cpus of the emulated machine as sysfs has them
//! (Documentation/ABI/testing/sysfs-devices-system-cpu): each is a core, each node a package.

use std::collections::BTreeMap;

use numalab_formats::memory_emulator::{CacheLevel, CacheScope, EmulatedMachine};
use numalab_topology::{CpuId, IdSet};

/// Adds each cpu's directories `topology` and `cache` below `cpus`.
pub(super) fn add(files: &mut BTreeMap<String, String>, cpus: &str, machine: &EmulatedMachine) {
    for (cpu, node) in machine.cpus.iter().enumerate() {
        let own = format!("{cpus}/cpu{cpu}");
        let package = like(machine, |other| machine.cpus[other] == *node);
        let alone = like(machine, |other| other == cpu);
        let mut topology = |name: &str, text| files.insert(format!("{own}/topology/{name}"), text);
        topology("physical_package_id", node.to_string());
        topology("core_id", cpu.to_string());
        for name in ["package_cpus", "core_siblings"] {
            topology(&format!("{name}_list"), package.to_string());
            topology(name, super::mask(&package));
        }
        for name in ["core_cpus", "thread_siblings"] {
            topology(&format!("{name}_list"), alone.to_string());
            topology(name, super::mask(&alone));
        }
        for (at, level) in machine.caches.iter().enumerate() {
            let shared = match level.scope {
                CacheScope::Cpu => alone.clone(),
                CacheScope::Group => {
                    like(machine, |other| group(machine, other) == group(machine, cpu))
                }
            };
            for (name, text) in cache(level, &shared) {
                files.insert(format!("{own}/cache/index{at}/{name}"), text);
            }
        }
    }
}

/// Returns the cpu's L3 group; without groups, its node's.
fn group(machine: &EmulatedMachine, cpu: usize) -> usize {
    machine.l3_groups.as_ref().map_or(machine.cpus[cpu], |groups| groups[cpu])
}

fn like(machine: &EmulatedMachine, is_in: impl Fn(usize) -> bool) -> IdSet<CpuId> {
    let cpus = (0..).zip(0..machine.cpus.len()).filter(|(_, at)| is_in(*at));
    cpus.map(|(cpu, _)| CpuId(cpu)).collect()
}

fn cache(level: &CacheLevel, shared: &IdSet<CpuId>) -> [(&'static str, String); 8] {
    let sets = level.size_bytes / (u64::from(level.ways) * u64::from(level.line_bytes)).max(1);
    let kind = if level.level == 1 { "Data" } else { "Unified" };
    [
        ("level", level.level.to_string()),
        ("type", kind.to_owned()),
        ("size", format!("{}K", level.size_bytes / 1024)),
        ("coherency_line_size", level.line_bytes.to_string()),
        ("ways_of_associativity", level.ways.to_string()),
        ("number_of_sets", sets.to_string()),
        ("shared_cpu_list", shared.to_string()),
        ("shared_cpu_map", super::mask(shared)),
    ]
}
