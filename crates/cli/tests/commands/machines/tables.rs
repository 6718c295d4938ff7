//! Every machine through ACPI tables and back.

use std::collections::BTreeMap;

use numalab_acpi::{AnyTable, Tables};
use numalab_formats::feature::TABLES;
use numalab_formats::hwloc::{read_xml, write_xml};
use numalab_formats::numactl;
use numalab_topology::{
    AccessAttributes, CpuId, Distances, Machine, Node, NodeId, NodeSet, ProximityDomain, Severity,
    TableBytes, TableError,
};

use super::all::all;
use super::losses::difference;

fn read(bytes: &TableBytes) -> Machine {
    let mut tables = Tables::default();
    let always = [&bytes.srat, &bytes.slit, &bytes.madt];
    for table in always.into_iter().chain(&bytes.hmat) {
        tables.insert(AnyTable::read(table).expect("our own table"));
    }
    Machine::from_tables(&tables)
}

/// Returns the machine with the values that tables assume for unknown ones: ids of nodes and cpus
/// for domains and APIC ids, distances of 10 and 20. Tables omit nodes without cpus and memory.
fn assumed(machine: &Machine) -> Machine {
    let mut machine = machine.clone();
    let known = |from, to| machine.distance(from, to);
    let is_there = |node: &Node| node.memory_bytes > 0 || !node.cpus.is_empty();
    let there: Vec<NodeId> =
        machine.nodes.iter().filter(|node| is_there(node)).map(|node| node.id).collect();
    let mut distances = Distances::unknown(there.len());
    for (row, &from) in there.iter().enumerate() {
        for (column, &to) in there.iter().enumerate() {
            let assumed = if from == to { 10 } else { 20 };
            distances.set(row, column, known(from, to).unwrap_or(assumed));
        }
    }
    machine.distances = distances;
    machine.nodes.retain(is_there);
    let is_there = |id: &NodeId| there.contains(id);
    machine.access.retain(|access| is_there(&access.initiator) && is_there(&access.target));
    for node in &mut machine.nodes {
        node.proximity_domain = node.proximity_domain.or(Some(ProximityDomain(node.id.0)));
    }
    for cpu in &mut machine.cpus {
        cpu.apic_id = cpu.apic_id.or(Some(cpu.id.0));
    }
    machine
}

/// Returns the machine read back with its original node and cpu numbers.
fn numbered_as(before: &Machine, came: &Machine) -> Machine {
    let nodes: BTreeMap<NodeId, NodeId> = came
        .nodes
        .iter()
        .filter_map(|node| {
            let same = |other: &&Node| other.proximity_domain == node.proximity_domain;
            Some((node.id, before.nodes.iter().find(same)?.id))
        })
        .collect();
    let cpus: BTreeMap<CpuId, CpuId> = came
        .cpus
        .iter()
        .filter_map(|cpu| {
            let same = |other: &&numalab_topology::Cpu| other.apic_id == cpu.apic_id;
            Some((cpu.id, before.cpus.iter().find(same)?.id))
        })
        .collect();
    let mut machine = came.clone();
    let order: Vec<NodeId> = came.nodes.iter().map(|node| node.id).collect();
    for node in &mut machine.nodes {
        node.cpus = node.cpus.iter().map(|cpu| cpus[&cpu]).collect();
        node.id = nodes[&node.id];
    }
    machine.nodes.sort_by_key(|node| node.id);
    for cpu in &mut machine.cpus {
        cpu.node = cpu.node.map(|node| nodes[&node]);
        cpu.id = cpus[&cpu.id];
    }
    machine.cpus.sort_by_key(|cpu| cpu.id);
    machine.ranges.iter_mut().for_each(|range| range.node = nodes[&range.node]);
    for access in &mut machine.access {
        (access.initiator, access.target) = (nodes[&access.initiator], nodes[&access.target]);
    }
    machine.access.sort_by_key(|access| (access.initiator, access.target));
    for (row, &from) in order.iter().enumerate() {
        for (column, &to) in order.iter().enumerate() {
            if let Some(distance) = came.distances.get(row, column) {
                let place = |id: NodeId| machine.node_index(nodes[&id]).expect("a node");
                let (row, column) = (place(from), place(to));
                machine.distances.set(row, column, distance);
            }
        }
    }
    machine
}

/// Nodes without ranges get made-up ones; only their sum comes from the machine.
fn forget_made_up_ranges(machine: &mut Machine, before: &Machine) {
    let known: NodeSet = before
        .ranges
        .iter()
        .filter(|range| range.length_bytes > 0 && !range.hot_pluggable)
        .map(|range| range.node)
        .collect();
    machine.ranges.retain(|range| known.contains(range.node) || range.hot_pluggable);
}

/// Treats figures as equal if they agree within 16 bits.
fn forget_digits(came: &mut [AccessAttributes], left: &mut [AccessAttributes]) {
    type Field = fn(&mut AccessAttributes) -> &mut Option<u64>;
    let fields: [Field; 4] = [
        |access| &mut access.read_latency_ps,
        |access| &mut access.write_latency_ps,
        |access| &mut access.read_bandwidth_mb_per_s,
        |access| &mut access.write_bandwidth_mb_per_s,
    ];
    for field in fields {
        let largest = left.iter_mut().filter_map(|access| *field(access)).max().unwrap_or_default();
        for (came, left) in came.iter_mut().zip(left.iter_mut()) {
            let (came, left) = (field(came), field(left));
            if let (Some(one), Some(other)) = (*came, *left)
                && one.abs_diff(other) <= largest / 65_000 + 1
            {
                *came = Some(other);
            }
        }
    }
}

/// Returns the machine, and its descriptions in other tools' formats.
fn as_described(machine: &Machine) -> [(&'static str, Option<Machine>); 3] {
    let xml = write_xml(machine).ok();
    [
        ("itself", Some(machine.clone())),
        ("its hwloc XML", xml.map(|xml| read_xml(&xml).expect("our own XML").value)),
        ("its numactl text", Some(numactl::read(&numactl::write(machine)).expect("ours").value)),
    ]
}

/// Panics unless the machine comes back, or is refused for its actual fault.
fn survives(name: &str, machine: &Machine) -> Result<(), TableError> {
    let bytes = machine.to_tables().inspect_err(|error| match error {
        TableError::NoMemory => assert_eq!(machine.memory_bytes(), 0, "{name}"),
        error => {
            let wrong = machine.validate().iter().any(|finding| finding.severity > Severity::Note);
            assert!(wrong, "{name}: {error}");
        }
    })?;
    let mut left = assumed(&TABLES.left(machine));
    let mut came = numbered_as(&left, &read(&bytes));
    forget_made_up_ranges(&mut came, machine);
    forget_made_up_ranges(&mut left, machine);
    left.access.sort_by_key(|access| (access.initiator, access.target));
    if bytes.findings.iter().any(|finding| finding.code == "figures-rounded") {
        forget_digits(&mut came.access, &mut left.access);
    }
    if let Some(difference) = difference(&came, &left) {
        let lost = TABLES.lost(machine);
        panic!("{name}, said to lose {lost:?}: {difference}\n{:?}", bytes.findings);
    }
    Ok(())
}

#[test]
fn every_machine_comes_back_from_its_tables_except_for_the_noted_losses() {
    let (mut whole, mut refused) = (0, Vec::new());
    for (name, machine) in all() {
        for (source, described) in as_described(machine) {
            let name = format!("{name} by {source}");
            match described.map(|described| survives(&name, &described)) {
                None => {}
                Some(Ok(())) => whole += 1,
                Some(Err(TableError::NoMemory)) => refused.push(name),
                Some(Err(error)) => {
                    eprintln!("{name}: {error}");
                    refused.push(name);
                }
            }
        }
    }
    eprintln!("tables: {whole} machines whole, {} refused", refused.len());
    assert!(whole >= 30 && refused.len() >= 6, "{whole} whole; refused: {refused:?}");
}
