//! Checks that a format loses exactly what it declares.

use std::collections::BTreeMap;

use numalab_formats::hwloc::{read_xml, write_xml};
use numalab_formats::{Carried, TOOL_FORMATS, ToolInput, hwloc, machine_toml, numactl};
use numalab_record::system::Described;
use numalab_results::Report;
use numalab_topology::{CacheKind, Cpu, CpuSet, EmulatedNodes, EmulationSpec, Machine};
use serde_json::Value;

use super::all::all;

/// Writes a machine; `None` if the format refuses it.
type Write = fn(&Machine) -> Option<String>;

/// Reads a writer's text with our own reader.
type Read = fn(&str) -> Machine;

/// Formats that numalab also reads; the rest is compared after a round trip.
const READ: [(Carried, Write, Read); 2] = [
    (
        numactl::CARRIED,
        |machine| Some(numactl::write(machine)),
        |text| numactl::read(text).expect("our own text").value,
    ),
    (
        hwloc::CARRIED,
        |machine| write_xml(machine).ok(),
        |text| read_xml(text).expect("our own XML").value,
    ),
];

/// Returns the formats of numalab's list that represent a part of a machine, and that only other tools
/// read.
fn written() -> impl Iterator<Item = (Carried, impl Fn(&Machine) -> Option<ToolInput>)> {
    TOOL_FORMATS.into_iter().filter_map(|format| {
        let write = move |machine: &Machine| {
            let mut spec = EmulationSpec::like(machine);
            if let EmulatedNodes::Listed(nodes) = &mut spec.nodes {
                // Linux decides which cpus a node has.
                nodes.iter_mut().for_each(|node| node.cpus = None);
            }
            Some((format.write)(machine, &spec).ok()?.output)
        };
        let is_read = |of: &Carried| READ.iter().any(|(read, ..)| read.format == of.format);
        Some((format.carried.filter(|of| !is_read(of))?, write))
    })
}

/// Returns the first difference between two machines.
pub fn difference(one: &Machine, other: &Machine) -> Option<String> {
    let json = |machine: &Machine| serde_json::to_value(machine).expect("JSON");
    let (mut one, mut other, mut path) = (json(one), json(other), String::new());
    while one != other {
        let next = match (&one, &other) {
            (Value::Object(left), Value::Object(right)) => left.iter().find_map(|(key, value)| {
                let value = (value.clone(), right.get(key).cloned().unwrap_or_default());
                (value.0 != value.1).then(|| (key.clone(), value))
            }),
            (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
                let pairs = left.iter().zip(right).enumerate();
                let unlike = pairs.filter(|(_, (left, right))| left != right);
                unlike
                    .map(|(index, (left, right))| {
                        (index.to_string(), (left.clone(), right.clone()))
                    })
                    .next()
            }
            _ => None,
        };
        let Some((key, values)) = next else {
            return Some(format!("{path}: {one} and not {other}"));
        };
        path = format!("{path}/{key}");
        (one, other) = values;
    }
    None
}

/// Returns a machine with sorted lists, with cores and L3 groups numbered by their first cpus, and
/// fully accessible to the process.
fn in_order(machine: &Machine) -> Machine {
    let mut machine = machine.clone();
    renumber(&mut machine, |cpu| &mut cpu.core);
    renumber(&mut machine, |cpu| &mut cpu.l3_group);
    let mut threads: BTreeMap<u32, u32> = BTreeMap::new();
    for cpu in &mut machine.cpus {
        cpu.thread = cpu.core.map_or(0, |core| {
            let next = threads.entry(core).or_default();
            *next += 1;
            *next - 1
        });
    }
    machine.caches.retain(|cache| {
        let known = (cache.size_bytes, cache.line_bytes, cache.ways) != (None, None, None);
        known || (cache.level, cache.kind) != (3, CacheKind::Unified)
    });
    machine.caches.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
    machine.access.sort_by_key(|access| (access.initiator, access.target, access.class));
    for node in &mut machine.nodes {
        node.huge_pages.sort_by_key(|pool| pool.page_bytes);
    }
    let (cpus, nodes) = (machine.online_cpus(), machine.nodes.iter().map(|node| node.id).collect());
    machine.allowed = machine.allowed.filter(|allowed| {
        !cpus.is_subset(&allowed.cpus)
            || !numalab_topology::NodeSet::is_subset(&nodes, &allowed.memory_nodes)
    });
    machine
}

fn renumber(machine: &mut Machine, number: impl Fn(&mut Cpu) -> &mut Option<u32>) {
    let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
    for cpu in &mut machine.cpus {
        if let Some(number) = number(cpu) {
            let next = u32::try_from(numbers.len()).expect("few");
            *number = *numbers.entry(*number).or_insert(next);
        }
    }
}

#[test]
fn every_machine_comes_back_from_toml_and_json_as_it_was() {
    for (name, machine) in all() {
        let text = machine_toml::write(machine).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(machine_toml::read(&text).expect("our own TOML"), *machine, "{name}\n{text}");
        let described = Described { machine: machine.clone(), findings: Vec::new() };
        let json = described.json().expect("JSON");
        let json = crate::schemas::document(&json);
        let read: Machine = serde_json::from_value(json["machine"].clone()).expect("a machine");
        assert_eq!(read, *machine, "{name}");
    }
}

#[test]
fn the_machine_comes_back_except_for_the_noted_losses() {
    for (carried, write, read) in READ {
        let mut written = 0;
        for (name, machine) in all() {
            let Some(text) = write(machine) else { continue };
            let (came, left) = (in_order(&read(&text)), in_order(&carried.left(machine)));
            if let Some(difference) = difference(&came, &left) {
                let lost = carried.lost(machine);
                panic!("{} of {name}, said to lose {lost:?}: {difference}", carried.format);
            }
            written += 1;
        }
        eprintln!("{}: {written} of {} machines", carried.format, all().len());
    }
}

#[test]
fn losses_in_the_note_change_nothing_of_the_text() {
    for (carried, write) in written() {
        let mut written = 0;
        for (name, machine) in all() {
            let Some(text) = write(machine) else { continue };
            let lost = carried.lost(machine);
            let again = write(&carried.left(machine));
            assert_eq!(Some(text), again, "{} of {name}, said to lose {lost:?}", carried.format);
            written += 1;
        }
        eprintln!("{}: {written} of {} machines", carried.format, all().len());
    }
}

#[test]
fn everything_without_a_note_is_in_the_text() {
    for (carried, write) in written() {
        for &feature in carried.features {
            let speaks = |machine: &Machine| {
                let mut without = machine.clone();
                feature.clear(&mut without);
                let text = write(machine);
                without != *machine && text.is_some() && write(&without) != text
            };
            let some = all().iter().any(|(_, machine)| speaks(machine));
            assert!(some, "{} never says {feature:?}", carried.format);
        }
    }
}

#[test]
fn offline_cpus_are_distinguished_from_online_ones() {
    let (_, rich) = all().iter().find(|(name, _)| name == "something of everything").expect("ours");
    let text = write_xml(rich).expect("a tree");
    let online: CpuSet = read_xml(&text).expect("our own").value.online_cpus();
    assert_eq!(online, rich.online_cpus());
}
