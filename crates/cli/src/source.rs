//! The machine of a command: live, described or emulated.

use std::path::Path;

use numalab_formats::described::{DescribedError, part_of, uniform};
use numalab_formats::machine_toml::MachineFile;
use numalab_formats::memory_emulator::{self, EmulatedMachine, GivenCosts, MemoryCosts};
use numalab_formats::size::{format_bytes, format_rounded};
use numalab_formats::{ReadError, Reading, architecture, emulation, hwloc, lscpu, machine_toml};
use numalab_formats::{numactl, printed_by, tiers};
use numalab_host::{Root, read_machine_and_devices};
use numalab_record::{Document, Kind};
use numalab_results::run::NodeAccess;
use numalab_topology::{Cache, EmulatedNodes, EmulationSpec, Finding, Findings, Machine, TierSpec};

use crate::args::MachineArgs;
use crate::failure::Failure;
use crate::input::{self, MOST_TABLE_BYTES, text};

/// Default memory of each node of a guest modelled on a known machine.
const LIKE_BYTES_PER_NODE: u64 = 512 << 20;
/// Default number of cpus on each of its nodes.
const LIKE_CPUS_PER_NODE: usize = 2;
/// Default number of cpus of a guest, at least.
const GUEST_CPUS: u32 = 2;

/// A machine, with findings about its source.
#[derive(Default)]
pub(crate) struct Described {
    pub machine: Machine,
    pub findings: Vec<Finding>,
    /// The emulated nodes, if any.
    pub emulated: Option<EmulationSpec>,
    /// The emulated tiers, if any.
    pub tiers: Option<TierSpec>,
    /// The machine file, if the machine's memory is known.
    pub file: Option<MachineFile>,
}

impl Described {
    /// Returns a guest's memory as the emulator models it: from the machine's file, otherwise
    /// with these costs.
    pub fn emulated_memory(&self, given: GivenCosts) -> Result<EmulatedMachine, Failure> {
        self.modelled(&given.or(MemoryCosts::of_guest(self.tiers.as_ref())))
    }

    /// Returns the same for a followed program.
    pub fn followed_memory(&self, given: GivenCosts) -> Result<EmulatedMachine, Failure> {
        self.modelled(&given.or(MemoryCosts::usual(self.tiers.as_ref())))
    }

    fn modelled(&self, costs: &MemoryCosts) -> Result<EmulatedMachine, Failure> {
        let machine = match &self.file {
            Some(file) => file.emulated(&self.machine),
            None => memory_emulator::describe(&self.machine, costs),
        };
        Ok(machine?)
    }
}

/// Returns the machine that the arguments name.
pub(crate) fn describe(args: &MachineArgs) -> Result<Described, Failure> {
    if let Some(text) = &args.emulate_tiers {
        return tiered(text, args.emulated.cpus.unwrap_or(GUEST_CPUS), args.cxl);
    }
    if let Some(name) = &args.emulated.emulate_like {
        return like(name, args, None);
    }
    build(args, emulated(args)?, args.emulated.cpus)
}

/// Returns the machine of a guest: like [`describe`], but uniform if the arguments do not describe
/// it.
pub(crate) fn describe_guest(args: &MachineArgs) -> Result<Described, Failure> {
    if args.emulate_tiers.is_some() {
        return describe(args);
    }
    if let Some(name) = &args.emulated.emulate_like {
        return like(name, args, Some((LIKE_CPUS_PER_NODE, LIKE_BYTES_PER_NODE)));
    }
    let spec = emulated(args)?;
    let free = args.source.is_none() && args.topology.is_none();
    let usual = free.then(|| guest_cpus(spec.as_ref()));
    build(args, spec, args.emulated.cpus.or(usual))
}

/// Returns a machine with these tiers of memory.
fn tiered(text: &str, cpus: u32, cxl: bool) -> Result<Described, Failure> {
    let bad =
        |error: &dyn std::fmt::Display| Failure::bad_input(format!("--emulate-tiers: {error}"));
    let spec = tiers::parse(text).map_err(|error| bad(&error))?;
    let machine = if cxl { spec.cxl_machine(cpus) } else { spec.machine(cpus) };
    let machine = machine.map_err(|error| bad(&error))?;
    Ok(Described { machine, tiers: Some(spec), ..Described::default() })
}

/// Returns a known machine, or the part of it that the arguments ask for.
fn like(name: &str, args: &MachineArgs, usual: Option<(usize, u64)>) -> Result<Described, Failure> {
    let file = input::machine_file(name)?;
    let (cpus, memory) = (args.emulated.cpus, args.memory);
    let machine = if cpus.is_none() && memory.is_none() && usual.is_none() {
        file.machine.clone()
    } else {
        let (per_node, node_bytes) = usual.unwrap_or((usize::MAX, u64::MAX));
        let nodes = file.machine.nodes.iter().filter(|node| node.online).count().max(1);
        let memory = memory.unwrap_or(node_bytes.saturating_mul(nodes as u64));
        part_of(&file.machine, cpus, per_node, memory).map_err(refused)?
    };
    Ok(Described { machine, file: Some(file), ..Described::default() })
}

/// Names the option of a number that does not describe a machine.
fn refused(error: DescribedError) -> Failure {
    Failure::bad_input(match error {
        DescribedError::Cpus { cpus, error } => format!("--cpus {cpus}: {error}"),
        DescribedError::Nodes(error) => format!("--emulate: {error}"),
        DescribedError::Uneven { cpus, nodes } => {
            format!("--cpus {cpus}: expected a multiple of {nodes}, the nodes with cpus")
        }
    })
}

/// Returns one cpu for each node without explicit cpus, at least [`GUEST_CPUS`] in all.
fn guest_cpus(spec: Option<&EmulationSpec>) -> u32 {
    let cpus = match spec.map(|spec| &spec.nodes) {
        None => 0,
        Some(EmulatedNodes::Equal(nodes) | EmulatedNodes::Split(nodes)) => *nodes,
        Some(EmulatedNodes::Listed(nodes)) => {
            nodes.iter().fold(0, |sum: usize, node| sum.saturating_add(node.cpus.unwrap_or(1)))
        }
    };
    u32::try_from(cpus).unwrap_or(u32::MAX).max(GUEST_CPUS)
}

fn emulated(args: &MachineArgs) -> Result<Option<EmulationSpec>, Failure> {
    let Some(nodes) = &args.emulated.emulate else { return Ok(None) };
    let spec = emulation::parse(nodes, args.emulated.distances.as_deref());
    spec.map(Some).map_err(|error| Failure::bad_input(format!("--emulate: {error}")))
}

fn build(
    args: &MachineArgs,
    spec: Option<EmulationSpec>,
    cpus: Option<u32>,
) -> Result<Described, Failure> {
    let (machine, findings) = match (cpus, args.memory) {
        (Some(cpus), memory) => {
            (uniform(spec.as_ref(), cpus, memory).map_err(refused)?, Vec::new())
        }
        (None, Some(_)) => return Err(Failure::bad_input("--memory: expected --cpus as well")),
        (None, None) => {
            let (base, findings) = described(args)?;
            let emulated = spec.as_ref().map(|spec| spec.emulate(&base)).transpose();
            (emulated.map_err(|error| refused(error.into()))?.unwrap_or(base), findings)
        }
    };
    Ok(Described { machine, findings, emulated: spec, ..Described::default() })
}

fn described(args: &MachineArgs) -> Result<(Machine, Vec<Finding>), Failure> {
    if let Some(file) = &args.topology {
        let machine = machine_toml::read(&text(file)?).map_err(|error| in_file(file, &error))?;
        return Ok((machine, Vec::new()));
    }
    let source = args.source.as_deref().unwrap_or("sysfs");
    let (kind, place) = match source.split_once(':') {
        Some((kind, place)) => (kind, Some(Path::new(place))),
        None => (source, None),
    };
    match (kind, place) {
        ("sysfs", None) => live(&Root::live()),
        ("sysfs", Some(directory)) => live(&Root::at(directory)),
        ("acpi", directory) => crate::tables::machine(directory),
        ("arch", Some(file)) => {
            let text = input::architecture(file)?;
            let reading =
                architecture::read(&text).map_err(|error| in_text(kind, file, &text, &error))?;
            Ok((reading.value.machine, reading.findings))
        }
        ("lscpu", Some(file)) => read(kind, file, lscpu::read),
        ("lstopo", Some(file)) => read(kind, file, |text| match hwloc::is_synthetic(text) {
            true => hwloc::read_synthetic(text),
            false => hwloc::read_xml(text),
        }),
        ("numactl", Some(file)) => read(kind, file, numactl::read),
        ("results", Some(place)) => measured(place),
        _ => Err(Failure::bad_input(format!(
            "--source `{source}`: expected sysfs, sysfs:DIR, acpi, acpi:DIR, arch:FILE, \
             lscpu:FILE, lstopo:FILE, numactl:FILE or results:DIR"
        ))),
    }
}

/// Reads a run from its result directory or its JSON.
pub(crate) fn run_document(place: &Path) -> Result<Document, Failure> {
    if place.is_file() {
        let bytes = input::bytes(place, MOST_TABLE_BYTES)?;
        let text = String::from_utf8_lossy(&bytes);
        return Kind::Run.read(&text).map_err(|error| in_file(place, &error));
    }
    Ok(numalab_measure::read(place)?)
}

/// Returns the machine of a run, with measured figures in place of the firmware's.
fn measured(place: &Path) -> Result<(Machine, Vec<Finding>), Failure> {
    let document = run_document(place)?;
    let NodeAccess { access, chase, write } = NodeAccess::of(&document);
    if access.is_empty() {
        let message = "it has neither a latency nor a bandwidth from a node's cpus to a node's \
                       memory";
        return Err(Failure::bad_input(format!("{}: {message}", place.display())));
    }
    let mut machine = document.run.machine;
    let mut findings = Findings::default();
    if let Some((pattern, bytes, pages)) = chase {
        let size = format_bytes(bytes);
        let of = format!("{pattern} over {size}, {} pages", pages.name());
        findings.note("latency-measured", "latencies", format!("measured: {of}"));
        let holds = |cache: &&Cache| cache.size_bytes.is_some_and(|held| held >= bytes);
        if let Some(cache) = machine.caches.iter().find(holds) {
            let held = format_rounded(cache.size_bytes.unwrap_or_default());
            let message =
                format!("{size} may fit into a cache of {held}: latencies may be the cache's");
            findings.warning("latency-of-cache", "latencies", message);
        }
    }
    if let Some(kernel) = write {
        let message = format!("measured: reads, and {} for writes", kernel.name());
        findings.note("bandwidth-measured", "bandwidths", message);
    }
    machine.access = access;
    Ok((machine, findings.into_list()))
}

fn live(root: &Root) -> Result<(Machine, Vec<Finding>), Failure> {
    let reading = read_machine_and_devices(root)?;
    Ok((reading.machine, reading.findings))
}

/// Reads a machine from a tool's text.
fn read(
    kind: &str,
    file: &Path,
    reader: impl Fn(&str) -> Result<Reading, ReadError>,
) -> Result<(Machine, Vec<Finding>), Failure> {
    let text = text(file)?;
    let reading = reader(&text).map_err(|error| in_text(kind, file, &text, &error))?;
    Ok((reading.value, reading.findings))
}

/// Returns the error about a text, with what to give instead where the text is another tool's.
fn in_text(kind: &str, file: &Path, text: &str, error: &ReadError) -> Failure {
    match printed_by::advice(kind, text) {
        Some(advice) => Failure::bad_input(format!("{}: {error}; {advice}", file.display())),
        None => in_file(file, error),
    }
}

fn in_file(file: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::bad_input(format!("{}: {error}", file.display()))
}
