//! Processors with several kinds of cores.

use std::collections::BTreeMap;

use numalab_topology::{Cpu, CpuSet};

use super::cpus::{CPU_DIRECTORY, directory};
use super::reader::Reader;

/// The units of counters that Intel's processors have for each kind, fastest first (Linux
/// `arch/x86/events/intel/core.c`).
const UNITS: [&str; 3] = ["cpu_core", "cpu_atom", "cpu_lowpower"];

/// Notes that cores are of several kinds, with the cpus of each kind, because a figure of one does
/// not hold for another.
pub(super) fn note(reader: &mut Reader<'_>, cpus: &[Cpu]) {
    let known: CpuSet = cpus.iter().map(|cpu| cpu.id).collect();
    let mut kinds = by_unit(reader, &known);
    if kinds.len() < 2 {
        kinds = by_capacity(reader, cpus);
    }
    if kinds.len() > 1 {
        let named: Vec<String> =
            kinds.iter().map(|(name, cpus)| format!("cpus {cpus} ({name})")).collect();
        let message = format!(
            "cores are of {} kinds: {}; a figure of one kind does not hold for another, and --cpus \
             chooses",
            kinds.len(),
            named.join(", ")
        );
        reader.note("cores-differ", CPU_DIRECTORY, message);
    }
}

fn by_unit(reader: &mut Reader<'_>, known: &CpuSet) -> Vec<(String, CpuSet)> {
    let cpus = |unit: &str| {
        let listed: CpuSet = reader.list(&format!("sys/devices/{unit}/cpus"))?;
        let cpus = listed.intersection(known);
        (!cpus.is_empty()).then(|| (unit.to_owned(), cpus))
    };
    UNITS.into_iter().filter_map(cpus).collect()
}

/// Returns the cpus of each capacity, the highest first (Linux `Documentation/scheduler/sched-capacity.rst`).
fn by_capacity(reader: &mut Reader<'_>, cpus: &[Cpu]) -> Vec<(String, CpuSet)> {
    let mut kinds: BTreeMap<u64, CpuSet> = BTreeMap::new();
    for cpu in cpus.iter().filter(|cpu| cpu.online) {
        // Either all have the file or none has.
        let Some(capacity) = reader.number(&format!("{}/cpu_capacity", directory(cpu.id))) else {
            return Vec::new();
        };
        kinds.entry(capacity).or_default().insert(cpu.id);
    }
    let named = |(capacity, cpus)| (format!("capacity {capacity}"), cpus);
    kinds.into_iter().rev().map(named).collect()
}
