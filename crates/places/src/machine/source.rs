//! Sources of machines: this system, copied trees, tables, other tools' texts, and runs.

use std::path::Path;

use numalab_formats::size::{format_bytes, format_rounded};
use numalab_formats::{
    ReadError, Reading, architecture, capabilities, hwloc, likwid, lscpu, machine_toml, numactl,
    printed_by, xl_info,
};
use numalab_host::{Root, read_machine_and_devices};
use numalab_record::Document;
use numalab_results::run::NodeAccess;
use numalab_topology::{Cache, Finding, Findings, Machine};

use super::error::MachineError;
use super::files::{architecture_text, text};
use super::tables;

/// Findings that are mistakes in a machine file.
const MISTAKES: [&str; 8] = [
    "access-node-unknown",
    "cpu-without-node",
    "distance-below-10",
    "distance-diagonal",
    "distance-size",
    "free-exceeds-memory",
    "range-end",
    "range-node-unknown",
];

/// A machine, with findings about its source.
type Read = Result<(Machine, Vec<Finding>), MachineError>;

/// Reads a machine from numalab's own TOML.
pub(super) fn own(file: &Path) -> Read {
    let machine = machine_toml::read(&text(file)?);
    let machine = machine.map_err(|error| MachineError::file(file, error))?;
    if machine.nodes.is_empty() {
        return Err(MachineError::file(file, "it describes no machine: expected a [[node]]"));
    }
    let findings = machine.validate().into_iter().filter(is_mistake).collect();
    Ok((machine, findings))
}

/// Returns true for a finding that is a mistake in a file written by hand; others, such as a core
/// that spans nodes, are how some machines are.
fn is_mistake(finding: &Finding) -> bool {
    MISTAKES.contains(&finding.code.as_str())
}

/// Reads a machine from a source such as `sysfs` or `lstopo:FILE`.
pub(super) fn read_source(source: &str) -> Read {
    let (kind, place) = match source.split_once(':') {
        Some((kind, place)) => (kind, Some(Path::new(place))),
        None => (source, None),
    };
    match (kind, place) {
        ("sysfs", None) => live(&Root::live()),
        ("sysfs", Some(directory)) => live(&Root::at(directory)),
        ("acpi", directory) => tables::machine(directory),
        ("arch", Some(file)) => {
            let text = architecture_text(file)?;
            let reading =
                architecture::read(&text).map_err(|error| in_text(kind, file, &text, &error))?;
            Ok((reading.value.machine, reading.findings))
        }
        ("libvirt", Some(file)) => read(kind, file, capabilities::read),
        ("likwid", Some(file)) => read(kind, file, likwid::read),
        ("lscpu", Some(file)) => read(kind, file, lscpu::read),
        ("lstopo", Some(file)) => read(kind, file, |text| match text {
            text if hwloc::is_synthetic(text) => hwloc::read_synthetic(text),
            text if hwloc::is_outline(text) => hwloc::read_outline(text),
            text => hwloc::read_xml(text),
        }),
        ("numactl", Some(file)) => read(kind, file, numactl::read),
        ("xl", Some(file)) => read(kind, file, xl_info::read),
        _ => Err(MachineError::Source { text: source.to_owned() }),
    }
}

/// Returns the machine of a run, with measured figures in place of the firmware's.
pub(super) fn measured(place: &Path, document: &Document) -> Read {
    let NodeAccess { access, chase, write } = NodeAccess::of(document);
    if access.is_empty() {
        let message = "it has neither a latency nor a bandwidth from a node's cpus to a node's \
                       memory";
        return Err(MachineError::file(place, message));
    }
    let mut machine = document.run.machine.clone();
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

fn live(root: &Root) -> Read {
    let reading = read_machine_and_devices(root)?;
    Ok((reading.machine, reading.findings))
}

/// Reads a machine from a tool's text.
fn read(kind: &str, file: &Path, reader: impl Fn(&str) -> Result<Reading, ReadError>) -> Read {
    let text = text(file)?;
    let reading = reader(&text).map_err(|error| in_text(kind, file, &text, &error))?;
    Ok((reading.value, reading.findings))
}

/// Returns the error about the input, with the correct source if it is another tool's.
fn in_text(kind: &str, file: &Path, text: &str, error: &ReadError) -> MachineError {
    match printed_by::advice(kind, text) {
        Some(advice) => MachineError::file(file, format_args!("{error}; {advice}")),
        None => MachineError::file(file, error),
    }
}
