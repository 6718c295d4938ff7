//! This machine as the emulator models it: its nodes, the cpus that this process may use, and the
//! known figures of its memory.

use numalab_formats::WriteError;
use numalab_formats::machine_toml::{self, MachineFile, MemoryFigures};
use numalab_formats::memory_emulator::{
    CacheLevel, CacheScope, EmulatedMachine, GivenCosts, LatencyModel, MemoryCosts, Stage, describe,
};
use numalab_host::{Root, node_rooms, read_environment};
use numalab_knobs::{FileState, HUGE_PAGES, Knob};
use numalab_record::explore::RoomByNode;
use numalab_results::advice::{CostsKnown, CpuPlace, KernelNow, TrialPlace};
use numalab_topology::{Cpu, Machine, NodeId};

use crate::model::{Target, costs};

/// Hit latencies of the cache levels in ns, for machines whose own are unknown.
const TYPICAL_CACHE_NS: [f64; 3] = [0.0, 4.0, 12.5];
/// Assumed share of an L3 available to a virtual machine, in bytes: the reported size is that of
/// the whole cache, which other guests use too.
const VIRTUAL_L3_BYTES: u64 = 16 << 20;
/// The emulator's limits on cpus and memory.
const MOST_CPUS: usize = 255;
const MOST_BYTES: u64 = 512 << 30;

/// Returns a target for this machine, with the figures of a machine file if one is given.
pub(crate) fn target_here(
    here: &Machine,
    (file, known): (Option<MachineFile>, &CostsKnown),
    given: GivenCosts,
    place: TrialPlace,
) -> Result<Target, WriteError> {
    let usable = here.usable_part();
    let mut small = within_limits(&usable);
    if let Some(file) = &file {
        // Those of this machine are its firmware's.
        small.access.clone_from(&file.machine.access);
    }
    let mut machine = match file {
        Some(file) => measured(&file, &small)?,
        None => typical(&small, known, given)?,
    };
    let online = small.nodes.iter().filter(|node| node.online);
    for (emulated, node) in machine.nodes.iter_mut().zip(online) {
        emulated.id = node.id.0;
    }
    let mut costs = costs(&machine, known.clone(), cpu_places(&usable));
    costs.kernel = kernel_now(&Root::live());
    costs.left_bytes = left_bytes(&node_rooms(&Root::live()), &costs.nodes);
    Ok(Target { machine, costs, place, guest: None })
}

/// Returns the bytes that each node can take; empty if that of any node is unknown.
fn left_bytes(rooms: &RoomByNode, nodes: &[u32]) -> Vec<u64> {
    let left = |node: &u32| rooms.get(&NodeId(*node)).map(|room| room.left_bytes());
    nodes.iter().map(left).collect::<Option<Vec<u64>>>().unwrap_or_default()
}

/// Returns the kernel's current settings for automatic placement.
fn kernel_now(root: &Root) -> KernelNow {
    let value = |name: &str| match Knob::find(root, name).ok()?.state(root) {
        FileState::Value(value) => Some(value),
        _ => None,
    };
    KernelNow {
        balancing: value("numa_balancing").and_then(|value| value.trim().parse().ok()),
        huge_always: value(HUGE_PAGES).is_some_and(|value| value == "always"),
    }
}

/// Returns the machine with one cpu of each core, and with no more cpus and memory than the
/// emulator models.
fn within_limits(machine: &Machine) -> Machine {
    let with_cpus = machine.cpu_nodes().len().max(1);
    let cores = |node| {
        let firsts = machine.first_threads().into_iter();
        firsts.filter(|cpu| machine.cpu(*cpu).is_some_and(|of| of.node == Some(node))).count()
    };
    let most = machine.cpu_nodes().iter().map(cores).max().unwrap_or(1);
    let bytes: u64 = machine.nodes.iter().map(|node| node.memory_bytes).sum();
    machine_toml::scaled(machine, most.min(MOST_CPUS / with_cpus), bytes.min(MOST_BYTES))
}

/// Returns the machine with the measured figures, and typical ones for the rest.
fn measured(file: &MachineFile, machine: &Machine) -> Result<EmulatedMachine, WriteError> {
    let emulated = file.emulated(machine)?;
    let lacks = [
        (emulated.core.is_none(), Stage::Core),
        (emulated.transfers.is_none(), Stage::Owners),
        (emulated.tlb.is_none(), Stage::Tlb),
    ];
    let lacking = lacks.into_iter().filter(|(is_lacking, _)| *is_lacking);
    Ok(lacking.fold(emulated, |machine, (_, stage)| machine.with(stage)))
}

/// Returns the machine with costs from its distances, firmware tables and reported caches, and with
/// the given ones for the rest.
fn typical(
    machine: &Machine,
    known: &CostsKnown,
    given: GivenCosts,
) -> Result<EmulatedMachine, WriteError> {
    let usual = MemoryCosts::usual(None);
    let mut reported = usual.clone();
    if *known == CostsKnown::Firmware {
        reported.latency = LatencyModel::Firmware;
    }
    reported.caches = reported_caches(machine);
    let costs = given.or(reported);
    // A reported cache may have a shape that the emulator does not model.
    let fallback = MemoryCosts { latency: usual.latency, caches: usual.caches, ..costs.clone() };
    describe(machine, &costs).or_else(|_| describe(machine, &fallback))
}

fn reported_caches(machine: &Machine) -> Vec<CacheLevel> {
    let cache_latency_ns = TYPICAL_CACHE_NS.to_vec();
    let memory = MemoryFigures { cache_latency_ns, ..MemoryFigures::default() };
    let mut caches = MachineFile { machine: machine.clone(), memory }.caches();
    if read_environment(&Root::live()).fact("hypervisor").is_some() {
        let set_bytes = |cache: &CacheLevel| u64::from(cache.ways) * u64::from(cache.line_bytes);
        for cache in caches.iter_mut().filter(|cache| cache.scope == CacheScope::Group) {
            let most = VIRTUAL_L3_BYTES / set_bytes(cache).max(1) * set_bytes(cache);
            cache.size_bytes = cache.size_bytes.min(most);
        }
    }
    caches
}

/// Returns every cpu that this process may use.
fn cpu_places(machine: &Machine) -> Vec<CpuPlace> {
    let place = |cpu: &Cpu| {
        let node = cpu.node.map_or(0, |node| node.0);
        let core = cpu.core.unwrap_or(cpu.id.0);
        CpuPlace { cpu: cpu.id.0, node, core, group: cpu.l3_group.unwrap_or(node) }
    };
    machine.cpus.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use numalab_places::machine::machine_file;
    use numalab_record::explore::NodeRoom;
    use numalab_topology::UniformMachine;

    use super::*;

    #[test]
    fn a_server_is_modelled_with_a_cpu_of_each_core_and_no_more_than_there_is_room_for() {
        let server = |cpus| UniformMachine {
            cpus,
            threads_per_core: 2,
            packages: 2,
            l3_groups: 4,
            memory_bytes: 2 << 40,
        };
        let small = within_limits(&server(256).build().expect("a machine"));
        assert_eq!((small.cpus.len(), small.memory_bytes()), (128, MOST_BYTES));
        let small = within_limits(&server(1024).build().expect("a machine"));
        assert_eq!(small.cpus.len(), MOST_CPUS);
        assert!(describe(&small, &MemoryCosts::default()).is_ok());
    }

    #[test]
    fn cpus_are_placed_by_their_core_and_group_and_without_these_by_themselves() {
        let mut machine = UniformMachine::of_packages(1, 2, 1 << 30).build().expect("a machine");
        (machine.cpus[1].core, machine.cpus[1].l3_group) = (None, None);
        machine.cpus[1].node = Some(NodeId(8));
        let places = cpu_places(&machine);
        let (first, cpu) = (&places[0], &machine.cpus[0]);
        assert_eq!(Some(first.core), cpu.core);
        assert_eq!(Some(first.group), cpu.l3_group);
        assert_eq!(places[1], CpuPlace { cpu: 1, node: 8, core: 1, group: 8 });
    }

    #[test]
    fn the_room_of_nodes_is_unknown_if_that_of_one_is() {
        let room = |gib: u64| NodeRoom { total_bytes: gib << 30, available_bytes: gib << 29 };
        let rooms = RoomByNode::from([(NodeId(0), room(5)), (NodeId(8), room(7))]);
        let left = |node: u32| rooms[&NodeId(node)].left_bytes();
        assert_eq!(left_bytes(&rooms, &[0, 8]), [left(0), left(8)]);
        assert_eq!(left_bytes(&rooms, &[0, 1]), Vec::<u64>::new());
    }

    #[test]
    fn figures_that_were_not_measured_are_typical() {
        let machine = machine_file("xeon-8360y-2s").expect("a bundled one").machine;
        let file = MachineFile { machine: machine.clone(), memory: MemoryFigures::default() };
        let lacking = file.emulated(&machine).expect("a model");
        assert!(lacking.core.is_none() && lacking.transfers.is_none() && lacking.tlb.is_none());
        let completed = measured(&file, &machine).expect("a model");
        let usual = [Stage::Core, Stage::Owners, Stage::Tlb];
        let usual = usual.into_iter().fold(lacking, EmulatedMachine::with);
        assert_eq!(completed, usual);
    }
}
