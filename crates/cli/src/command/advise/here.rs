//! This machine as the emulator models it: its nodes and the cpus that this process may use, with
//! what is known of its memory.

use std::path::Path;

use numalab_advise::{Target, costs};
use numalab_formats::machine_toml::{self, MachineFile, MemoryFigures};
use numalab_formats::memory_emulator::{
    CacheLevel, CacheScope, EmulatedMachine, LatencyModel, MemoryCosts, Stage, USUAL_CACHES,
    USUAL_STAGES, describe, parse_caches, parse_stages,
};
use numalab_guest::GuestError;
use numalab_host::knobs::{FileState, Knob};
use numalab_host::{Root, note, read_environment, read_machine};
use numalab_results::advice::{CostsKnown, CpuPlace, KernelNow, TrialPlace};
use numalab_results::capture::capture;
use numalab_topology::{Cpu, Machine};

use crate::args::{AdviseArgs, MachineArgs, MemoryCostArgs};
use crate::command::machine::figures::file_of;
use crate::failure::Failure;
use crate::{input, source};

/// What a hit in each level of the caches takes where that is not known.
const TYPICAL_CACHE_NS: [f64; 3] = [0.0, 4.0, 12.5];
/// What a virtual machine gets at most of an L3 that it shares with others: what is reported to it
/// is all of it.
const VIRTUAL_L3_BYTES: u64 = 16 << 20;
/// Cpus and memory that the emulator models at most.
const MOST_CPUS: usize = 255;
const MOST_BYTES: u64 = 512 << 30;

/// Whether the arguments are about this machine: they describe no other.
pub(super) fn is_meant(args: &MachineArgs) -> bool {
    let is_made = args.emulate.is_some()
        || args.emulate_like.is_some()
        || args.emulate_tiers.is_some()
        || args.topology.is_some()
        || args.cpus.is_some();
    let is_here = |source: &String| match source.split_once(':') {
        None => source == "sysfs",
        Some(("results", place)) => source::run_document(Path::new(place))
            .is_ok_and(|document| is_this(&document.run.machine)),
        Some(_) => false,
    };
    !is_made && args.source.as_ref().is_none_or(is_here)
}

/// Whether a machine has the nodes and cpus of this one.
fn is_this(machine: &Machine) -> bool {
    read_machine(&Root::live()).is_ok_and(|here| is_like(machine, &here.machine))
}

fn is_like(machine: &Machine, here: &Machine) -> bool {
    let shape = |of: &Machine| {
        let online = of.cpus.iter().filter(|cpu| cpu.online);
        online.map(|cpu| (cpu.id, cpu.node)).collect::<Vec<_>>()
    };
    shape(machine) == shape(here) && machine.memory_nodes() == here.memory_nodes()
}

/// This machine, as the emulator models it.
pub(super) fn target(args: &AdviseArgs, place: TrialPlace) -> Result<Target, Failure> {
    let reading = read_machine(&Root::live())?;
    let usable = reading.machine.usable_part();
    let small = within_limits(&usable);
    let (file, known) = figures(&args.machine, &reading.machine)?;
    let costs_of = &args.costs;
    let machine = match file {
        Some(file) => measured(&file, &small),
        None => typical(&small, &known, costs_of),
    };
    let mut machine = machine.map_err(|error| match &known {
        CostsKnown::Measured(place) => Failure::bad_input(format!("{place}: {error}")),
        _ => GuestError::from(error).into(),
    })?;
    let online = small.nodes.iter().filter(|node| node.online);
    for (emulated, node) in machine.nodes.iter_mut().zip(online) {
        emulated.id = node.id.0;
    }
    let mut costs = costs(&machine, known, places(&usable));
    costs.kernel = kernel_now(&Root::live());
    Ok(Target { machine, costs, place, guest: None })
}

/// What was measured of this machine, if the arguments name it, and where all figures are from.
fn figures(
    args: &MachineArgs,
    here: &Machine,
) -> Result<(Option<MachineFile>, CostsKnown), Failure> {
    let (name, file) = match (&args.emulate_like, args.source.as_deref()) {
        (Some(name), _) => (name.clone(), input::machine_file(name)?),
        (None, Some(source)) if source.starts_with("results:") => {
            let place = source.trim_start_matches("results:");
            let document = source::run_document(Path::new(place))?;
            (place.to_owned(), file_of(capture(&document).figures))
        }
        (None, None | Some("sysfs")) if is_meant(args) => {
            let known = match here.access.is_empty() {
                true => CostsKnown::Typical,
                false => CostsKnown::Firmware,
            };
            return Ok((None, known));
        }
        _ => {
            return Err(Failure::bad_input(
                "--try-on host: expected this machine, which no other option describes; what its \
                 memory costs, if measured, by --source results:DIR or --emulate-like FILE",
            ));
        }
    };
    if !is_like(&file.machine, here) {
        return Err(Failure::bad_input(format!(
            "--try-on host: {name} is of a machine with other nodes and cpus: expected what was \
             measured on this one"
        )));
    }
    Ok((Some(file), CostsKnown::Measured(name)))
}

/// One cpu of each core, as many of them and as much memory as the emulator models.
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

/// By what was measured; what was not is typical.
fn measured(
    file: &MachineFile,
    machine: &Machine,
) -> Result<EmulatedMachine, numalab_formats::WriteError> {
    let emulated = file.emulated(machine)?;
    let lacks = [
        (emulated.core.is_none(), Stage::Core),
        (emulated.transfers.is_none(), Stage::Owners),
        (emulated.tlb.is_none(), Stage::Tlb),
    ];
    let lacking = lacks.into_iter().filter(|(is_lacking, _)| *is_lacking);
    Ok(lacking.fold(emulated, |machine, (_, stage)| machine.with(stage)))
}

/// By distances, the firmware and the caches that are reported, and what the arguments say.
fn typical(
    machine: &Machine,
    known: &CostsKnown,
    args: &MemoryCostArgs,
) -> Result<EmulatedMachine, numalab_formats::WriteError> {
    let mut costs = args.costs(None);
    if args.emulate_latency.is_none() && *known == CostsKnown::Firmware {
        costs.latency = LatencyModel::Firmware;
    }
    if args.emulate_cache.is_none() {
        costs.caches = reported_caches(machine);
    }
    if args.emulate_stages.is_none() {
        costs.stages = parse_stages(USUAL_STAGES).unwrap_or_default();
    }
    let usual = parse_caches(USUAL_CACHES).unwrap_or_default();
    // A cache that is reported need not be one that can be modelled.
    let fallback = MemoryCosts { latency: LatencyModel::default(), caches: usual, ..costs.clone() };
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

/// Every cpu that this process may use.
fn places(machine: &Machine) -> Vec<CpuPlace> {
    let place = |cpu: &Cpu| {
        let node = cpu.node.map_or(0, |node| node.0);
        let core = cpu.core.unwrap_or(cpu.id.0);
        CpuPlace { cpu: cpu.id.0, node, core, group: cpu.l3_group.unwrap_or(node) }
    };
    machine.cpus.iter().map(place).collect()
}

/// What this kernel does by itself.
fn kernel_now(root: &Root) -> KernelNow {
    let value = |name: &str| match Knob::find(root, name).map(|knob| knob.state(root)) {
        Ok(FileState::Value(value)) => Some(value),
        Ok(_) => None,
        Err(error) => {
            note(error);
            None
        }
    };
    KernelNow {
        balancing: value("numa_balancing").and_then(|value| value.trim().parse().ok()),
        huge_always: value("thp_enabled").is_some_and(|value| value == "always"),
    }
}

#[cfg(test)]
mod tests {
    use numalab_topology::{CpuId, UniformMachine};

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
    fn a_machine_is_this_one_with_the_same_nodes_and_cpus() {
        let machine = |cpus| {
            let uniform = UniformMachine {
                cpus,
                threads_per_core: 1,
                packages: 1,
                l3_groups: 1,
                memory_bytes: 1 << 30,
            };
            uniform.build().expect("a machine")
        };
        assert!(is_like(&machine(4), &machine(4)) && !is_like(&machine(4), &machine(2)));
        let mut offline = machine(4);
        offline.cpus[3].online = false;
        assert_eq!(offline.cpus[3].id, CpuId(3));
        assert!(!is_like(&offline, &machine(4)));
    }
}
