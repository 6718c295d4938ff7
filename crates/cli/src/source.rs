//! Which machine a command is about: live, described or emulated.

use std::fs;
use std::path::Path;

use numalab_formats::{architecture, emulation, hwloc, machine_toml, numactl};
use numalab_host::{Root, read_machine};
use numalab_topology::{EmulatedNodes, EmulationSpec, Finding, Machine, UniformMachine};

use crate::args::MachineArgs;
use crate::failure::{Code, Failure};

/// Files larger than this are no description of a machine.
const MOST_FILE_BYTES: u64 = 64 << 20;
/// Memory of each emulated node where nothing says how much.
const BYTES_PER_NODE: u64 = 1 << 30;

/// A machine, and what was odd about its source.
pub(crate) struct Described {
    pub machine: Machine,
    pub findings: Vec<Finding>,
    /// What was emulated, if anything was.
    pub emulated: Option<EmulationSpec>,
}

/// The machine that the arguments name.
pub(crate) fn describe(args: &MachineArgs) -> Result<Described, Failure> {
    let spec = match &args.emulate {
        Some(nodes) => Some(
            emulation::parse(nodes, args.distances.as_deref())
                .map_err(|error| Failure::bad_input(format!("--emulate: {error}")))?,
        ),
        None => None,
    };
    let (base, findings) = match (&spec, args.cpus) {
        (Some(spec), Some(cpus)) => (uniform(spec, cpus, args.memory)?, Vec::new()),
        _ => described(args)?,
    };
    let machine = match &spec {
        Some(spec) => spec
            .emulate(&base)
            .map_err(|error| Failure::bad_input(format!("--emulate: {error}")))?,
        None => base,
    };
    Ok(Described { machine, findings, emulated: spec })
}

/// A machine of one node with enough memory for what is to be emulated on it.
fn uniform(spec: &EmulationSpec, cpus: u32, memory_bytes: Option<u64>) -> Result<Machine, Failure> {
    let of_nodes = match &spec.nodes {
        EmulatedNodes::Equal(nodes) | EmulatedNodes::Split(nodes) => {
            u64::try_from(*nodes).unwrap_or(u64::MAX).saturating_mul(BYTES_PER_NODE)
        }
        EmulatedNodes::Listed(nodes) => nodes.iter().map(|node| node.memory_bytes).sum(),
    };
    let memory_bytes = memory_bytes.unwrap_or(of_nodes);
    let machine =
        UniformMachine { cpus, threads_per_core: 1, packages: 1, l3_groups: 1, memory_bytes };
    machine.build().map_err(|error| Failure::bad_input(format!("--cpus {cpus}: {error}")))
}

fn described(args: &MachineArgs) -> Result<(Machine, Vec<Finding>), Failure> {
    if let Some(file) = &args.topology {
        let machine = machine_toml::read(&text(file)?).map_err(|error| in_file(file, &error))?;
        return Ok((machine, Vec::new()));
    }
    let (kind, place) = match args.source.split_once(':') {
        Some((kind, place)) => (kind, Some(Path::new(place))),
        None => (args.source.as_str(), None),
    };
    match (kind, place) {
        ("sysfs", None) => live(&Root::live()),
        ("sysfs", Some(directory)) => live(&Root::at(directory)),
        ("acpi", directory) => super::command::acpi::machine(directory),
        ("arch", Some(file)) => {
            let reading =
                architecture::read(&text(file)?).map_err(|error| in_file(file, &error))?;
            Ok((reading.value.machine, reading.findings))
        }
        ("lstopo", Some(file)) => {
            let reading = hwloc::read_xml(&text(file)?).map_err(|error| in_file(file, &error))?;
            Ok((reading.value, reading.findings))
        }
        ("numactl", Some(file)) => {
            let reading = numactl::read(&text(file)?).map_err(|error| in_file(file, &error))?;
            Ok((reading.value, reading.findings))
        }
        _ => Err(Failure::bad_input(format!(
            "--source `{}`: expected sysfs, sysfs:DIR, acpi, acpi:DIR, arch:FILE, lstopo:FILE \
             or numactl:FILE",
            args.source
        ))),
    }
}

fn live(root: &Root) -> Result<(Machine, Vec<Finding>), Failure> {
    let reading = read_machine(root).map_err(numalab_host::Error::from)?;
    Ok((reading.machine, reading.findings))
}

/// The text of a file that describes a machine.
fn text(file: &Path) -> Result<String, Failure> {
    let unreadable = |reason: &dyn std::fmt::Display| {
        Failure::new(Code::BadInput, format!("{}: could not read it: {reason}", file.display()))
    };
    let size = fs::metadata(file).map_err(|error| unreadable(&error))?.len();
    if size > MOST_FILE_BYTES {
        return Err(unreadable(&format!("{size} bytes, expected at most {MOST_FILE_BYTES}")));
    }
    let bytes = fs::read(file).map_err(|error| unreadable(&error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn in_file(file: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::bad_input(format!("{}: {error}", file.display()))
}
