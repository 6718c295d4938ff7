//! Conversion of machines from ACPI tables and back.

mod any_machine;
mod machines;
mod ranges;

use std::collections::BTreeMap;
use std::path::PathBuf;

use any_machine::any_machine;
use machines::machine;
use numalab_acpi::hmat::DataType;
use numalab_acpi::{AnyTable, Tables, cedt, hmat, madt};
use numalab_topology::{
    AccessAttributes, Distances, Machine, MemoryKind, MemorySideCache, NodeId, ProximityDomain,
    TableBytes, TableError,
};
use proptest::prelude::*;
use ranges::range;

const MIB: u64 = 1 << 20;

fn read(bytes: &TableBytes) -> Machine {
    let mut tables = Tables::default();
    let always = [&bytes.srat, &bytes.slit, &bytes.madt];
    for table in always.into_iter().chain(&bytes.hmat) {
        tables.insert(AnyTable::read(table).unwrap());
    }
    Machine::from_tables(&tables)
}

/// Returns the parts of a machine that tables represent, if its nodes appear in order.
fn as_tables(machine: &Machine) -> Machine {
    let mut carried = machine.clone();
    for node in &mut carried.nodes {
        node.proximity_domain = node.proximity_domain.or(Some(ProximityDomain(node.id.0)));
    }
    for cpu in &mut carried.cpus {
        cpu.apic_id = cpu.apic_id.or(Some(cpu.id.0));
        (cpu.package, cpu.core, cpu.l3_group, cpu.thread) = (None, None, None, 0);
    }
    carried
}

/// Returns two nodes with cpus, one without, with ranges and attributes.
fn with_attributes() -> Machine {
    let rows = [vec![10, 20, 17], vec![20, 10, 28], vec![17, 28, 10]];
    let mut machine = machine(&[2, 2, 0], &[true; 3], &rows);
    machine.ranges =
        vec![range(0, 1 << 30, 0), range(4 << 30, 1 << 30, 1), range(8 << 30, 1 << 30, 2)];
    machine.ranges[2].kind = MemoryKind::SpecialPurpose;
    for (initiator, target, ps) in
        [(0, 0, 80_500), (0, 2, 190_250), (1, 1, 80_500), (1, 2, 250_000)]
    {
        machine.access.push(AccessAttributes {
            initiator: NodeId(initiator),
            target: NodeId(target),
            read_latency_ps: Some(ps),
            write_latency_ps: Some(ps * 2),
            read_bandwidth_mb_per_s: Some(100_000),
            ..AccessAttributes::default()
        });
    }
    machine.nodes[2].memory_side_caches = vec![MemorySideCache {
        level: 1,
        size_bytes: 1 << 28,
        line_bytes: Some(64),
        ways: Some(1),
    }];
    machine
}

#[test]
fn a_machine_survives_its_tables() {
    let machine = with_attributes();
    assert_eq!(read(&machine.to_tables().unwrap()), as_tables(&machine));
}

#[test]
fn nodes_are_numbered_as_a_booted_kernel_does() {
    // Linux 6.1 on domains 0 to 5 of 128 MiB each, with cpus in 0, 2 and 5, showed domain 2 as its
    // node 1, domain 5 as node 2, and domains 1, 3 and 4 as nodes 3, 4 and 5.
    let rows: Vec<Vec<u8>> =
        (0..6).map(|from| (0..6).map(|to| if from == to { 10 } else { 20 }).collect()).collect();
    let mut machine = machine(&[1, 0, 1, 0, 0, 1], &[true; 6], &rows);
    machine.ranges =
        (0..6u32).map(|node| range(u64::from(node) * 128 * MIB, 128 * MIB, node)).collect();
    let booted = read(&machine.to_tables().unwrap());
    let domains: Vec<u32> =
        booted.nodes.iter().map(|node| node.proximity_domain.unwrap().0).collect();
    assert_eq!(domains, [0, 2, 5, 1, 3, 4]);
    let first =
        |node: u32| booted.ranges.iter().find(|range| range.node == NodeId(node)).unwrap().base;
    assert_eq!([first(1), first(2), first(3)], [0x1000_0000, 0x2800_0000, 0x0800_0000]);
}

#[test]
fn offline_cpus_and_large_apic_ids_survive_tables() {
    let mut machine = machine(&[3], &[true], &[vec![10]]);
    machine.ranges = vec![range(0, 1 << 30, 0)];
    machine.cpus[2].online = false;
    machine.cpus[1].apic_id = Some(1000);
    let read = read(&machine.to_tables().unwrap());
    assert_eq!(read, as_tables(&machine));
    assert_eq!(read.online_cpus().to_string(), "0,1");
}

#[test]
fn hot_pluggable_ranges_do_not_count_as_memory() {
    let mut machine = machine(&[1], &[true], &[vec![10]]);
    machine.ranges = vec![range(0, 1 << 30, 0), range(4 << 30, 1 << 40, 0)];
    machine.ranges[1].hot_pluggable = true;
    let read = read(&machine.to_tables().unwrap());
    assert_eq!(read.nodes[0].memory_bytes, 1 << 30);
    assert_eq!(read.ranges, machine.ranges);
}

#[test]
fn a_separate_cxl_window_is_an_offline_node() {
    let bytes = with_attributes().to_tables().unwrap();
    let window = |base| {
        cedt::Entry::Window(cedt::FixedMemoryWindow {
            base,
            size_bytes: 1 << 34,
            targets: numalab_acpi::List::Values(&[7]),
            ..cedt::FixedMemoryWindow::default()
        })
    };
    let mut buffer = [0; 256];
    let header = numalab_acpi::Header::new(numalab_acpi::Signature::CEDT, 1);
    let mut builder = numalab_acpi::Builder::<cedt::Layout>::new(&mut buffer, header, ());
    builder.push(&window(8 << 30)).push(&window(1 << 40));
    let mut tables = Tables::default();
    tables.insert(AnyTable::read(&bytes.srat).unwrap());
    tables.insert(AnyTable::read(builder.finish().unwrap()).unwrap());
    let machine = Machine::from_tables(&tables);
    assert_eq!(machine.nodes.len(), 4, "the first window is in the SRAT's third node");
    assert!(!machine.nodes[3].online);
    assert_eq!(machine.ranges[3].node, NodeId(3));
    assert_eq!(machine.ranges[3].kind, MemoryKind::SpecialPurpose);
}

#[test]
fn latencies_too_fine_for_16_bits_are_rounded() {
    let mut machine = with_attributes();
    machine.access[0].read_latency_ps = Some(80_501);
    machine.access[1].read_latency_ps = Some(999_999_999);
    let read = read(&machine.to_tables().unwrap());
    let near = read.access[0].read_latency_ps.unwrap();
    assert!(near.abs_diff(80_501) <= 15_260 / 2, "{near}");
    let far = read.access[1].read_latency_ps.unwrap();
    assert!(far.abs_diff(999_999_999) <= 15_260, "{far}");
}

#[test]
fn a_domain_beyond_any_distance_table_is_refused() {
    let mut machine = machine(&[1], &[true], &[vec![10]]);
    machine.nodes[0].proximity_domain = Some(ProximityDomain(1 << 30));
    assert_eq!(machine.to_tables(), Err(TableError::DomainTooLarge { domain: 1 << 30 }));
}

/// Returns the machine of the tables with another HMAT, with these matrices over the three domains.
fn with_matrices(matrices: &[(DataType, [u16; 9])]) -> Machine {
    let bytes = with_attributes().to_tables().unwrap();
    let mut buffer = [0; 1024];
    let header = numalab_acpi::Header::new(numalab_acpi::Signature::HMAT, 2);
    let mut builder =
        numalab_acpi::Builder::<hmat::Layout>::new(&mut buffer, header, hmat::Fixed::default());
    for (data_type, values) in matrices {
        builder.push(&hmat::Entry::Locality(hmat::Locality {
            data_type: (*data_type).into(),
            base_unit: 1,
            initiators: numalab_acpi::List::Values(&[0, 1, 2]),
            targets: numalab_acpi::List::Values(&[0, 1, 2]),
            values: numalab_acpi::List::Values(values),
            ..hmat::Locality::default()
        }));
    }
    let mut tables = Tables::default();
    tables.insert(AnyTable::read(&bytes.srat).unwrap());
    tables.insert(AnyTable::read(builder.finish().unwrap()).unwrap());
    Machine::from_tables(&tables)
}

#[test]
fn a_pair_missing_from_one_matrix_is_taken_from_another() {
    let reads = [10, 0, 0, 0, 10, 0, 0, 0, 0];
    let both = [9, 20, 30, 20, 9, u16::MAX, 0, 0, 0];
    for order in [[0, 1], [1, 0]] {
        let matrices = [(DataType::ReadBandwidth, reads), (DataType::AccessBandwidth, both)];
        let machine = with_matrices(&order.map(|place| matrices[place]));
        let known: Vec<(u32, u32, Option<u64>, Option<u64>)> = machine
            .access
            .iter()
            .map(|access| {
                let (read, write) =
                    (access.read_bandwidth_mb_per_s, access.write_bandwidth_mb_per_s);
                (access.initiator.0, access.target.0, read, write)
            })
            .collect();
        let expected = [
            (0, 0, Some(10), Some(9)),
            (0, 1, Some(20), Some(20)),
            (0, 2, Some(30), Some(30)),
            (1, 0, Some(20), Some(20)),
            (1, 1, Some(10), Some(9)),
        ];
        assert_eq!(known, expected, "{order:?}");
    }
}

/// Returns a machine as from a source such as `numactl --hardware`: sizes, but no ranges.
fn with_sizes(gibibytes: &[u64]) -> Machine {
    let rows: Vec<Vec<u8>> = (0..gibibytes.len())
        .map(|from| (0..gibibytes.len()).map(|to| if from == to { 10 } else { 20 }).collect())
        .collect();
    let mut machine = machine(&vec![1; gibibytes.len()], &vec![true; gibibytes.len()], &rows);
    for (node, size) in machine.nodes.iter_mut().zip(gibibytes) {
        node.memory_bytes = size << 30;
    }
    machine
}

#[test]
fn memory_of_known_size_and_unknown_address_is_laid_out_as_in_qemu() {
    let bytes = with_sizes(&[1, 2, 1]).to_tables().unwrap();
    let found = read(&bytes);
    let sizes: Vec<u64> = found.nodes.iter().map(|node| node.memory_bytes >> 30).collect();
    assert_eq!(sizes, [1, 2, 1]);
    let ranges: Vec<(u64, u64, u32)> = found
        .ranges
        .iter()
        .map(|range| (range.base >> 30, range.length_bytes >> 30, range.node.0))
        .collect();
    assert_eq!(ranges, [(0, 1, 0), (1, 1, 1), (4, 1, 1), (5, 1, 2)]);
    assert_eq!(bytes.findings[0].code, "memory-laid-out");
    assert!(with_attributes().to_tables().unwrap().findings.is_empty(), "its ranges are known");
}

#[test]
fn memory_that_fits_below_the_devices_has_no_hole() {
    let found = read(&with_sizes(&[1, 1]).to_tables().unwrap());
    assert_eq!(found.ranges, [range(0, 1 << 30, 0), range(1 << 30, 1 << 30, 1)]);
}

#[test]
fn a_node_without_ranges_comes_after_the_ranges_of_the_others() {
    let mut machine = with_sizes(&[2, 2, 3]);
    machine.ranges = vec![range(0, 2 << 30, 0), range(4 << 30, (2 << 30) + 4096, 1)];
    let found = read(&machine.to_tables().unwrap());
    assert_eq!(found.ranges[2], range(7 << 30, 3 << 30, 2));
}

#[test]
fn a_machine_without_known_memory_has_no_tables() {
    assert_eq!(with_sizes(&[0, 0]).to_tables(), Err(TableError::NoMemory));
}

#[test]
fn tables_that_a_reader_would_refuse_are_not_returned() {
    let refusal = |machine: &Machine| match machine.to_tables() {
        Err(TableError::Refused(finding)) => finding.to_string(),
        other => panic!("{other:?}"),
    };
    let mut machine = with_sizes(&[1, 1]);
    machine.ranges = vec![range(0, 2 << 30, 0), range(1 << 30, 2 << 30, 1)];
    assert!(refusal(&machine).contains("overlaps"), "{}", refusal(&machine));
    machine.ranges.clear();
    machine.nodes[1].proximity_domain = Some(ProximityDomain(0));
    assert!(refusal(&machine).contains("shares proximity domain 0"), "{}", refusal(&machine));
    machine.nodes[1].proximity_domain = None;
    machine.cpus[1].apic_id = Some(0);
    assert!(refusal(&machine).contains("node 1"), "{}", refusal(&machine));
}

#[test]
fn the_processors_of_the_srat_are_the_cpus_if_the_madt_has_no_known_ones() {
    let bytes = with_attributes().to_tables().unwrap();
    let mut buffer = [0; 128];
    let header = numalab_acpi::Header::new(numalab_acpi::Signature::MADT, 5);
    let mut builder =
        numalab_acpi::Builder::<madt::Layout>::new(&mut buffer, header, madt::Fixed::default());
    builder.push(&madt::Entry::Raw(numalab_acpi::RawEntry { kind: 0x80, bytes: &[0x80, 2] }));
    let mut tables = Tables::default();
    tables.insert(AnyTable::read(&bytes.srat).unwrap());
    tables.insert(AnyTable::read(builder.finish().unwrap()).unwrap());
    assert_eq!(Machine::from_tables(&tables).cpus.len(), 4);
}

#[test]
fn no_tables_give_an_empty_machine() {
    assert_eq!(Machine::from_tables(&Tables::default()), Machine::default());
}

fn corpus() -> Option<PathBuf> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");
    let path = std::env::var_os("NUMALAB_CORPUS").map_or_else(|| default.into(), PathBuf::from);
    let path = path.join("tables");
    if path.is_dir() {
        return Some(path);
    }
    eprintln!("NOT RUN: machines of real tables: there is no corpus at {}", path.display());
    None
}

/// Returns the tables of every machine of the corpus, by the machine's name.
fn real_tables(folder: PathBuf) -> BTreeMap<String, Vec<Vec<u8>>> {
    let mut machines: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    let mut paths: Vec<PathBuf> =
        folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|end| end == "bin")) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let (machine, _) = name.rsplit_once(".bin").unwrap().0.rsplit_once('.').unwrap();
        machines.entry(machine.to_owned()).or_default().push(std::fs::read(path).unwrap());
    }
    machines
}

#[test]
fn real_tables_give_consistent_machines_that_survive_writing() {
    let Some(folder) = corpus() else { return };
    let (mut with_nodes, mut stable) = (0, 0);
    for (name, files) in real_tables(folder) {
        let mut tables = Tables::default();
        for table in files.iter().filter_map(|bytes| AnyTable::read(bytes).ok()) {
            tables.insert(table);
        }
        let machine = Machine::from_tables(&tables);
        with_nodes += usize::from(!machine.nodes.is_empty());
        let structural =
            ["nodes-unordered", "cpus-unordered", "cpu-node-disagrees", "range-node-unknown"];
        for finding in machine.validate() {
            assert!(!structural.contains(&finding.code.as_str()), "{name}: {finding}");
        }
        let bytes = match machine.to_tables() {
            Ok(bytes) => bytes,
            Err(error) => {
                let reason = name.starts_with("mut-") || error == TableError::NoMemory;
                assert!(reason, "{name}: {error}");
                continue;
            }
        };
        let again = read(&bytes);
        assert_eq!(again.ranges.len(), machine.ranges.len(), "{name}");
        assert_eq!(again.cpus.len(), machine.cpus.len(), "{name}");
        assert_eq!(again.memory_bytes(), machine.memory_bytes(), "{name}");
        // Tables written once are in order, and give the same machine.
        assert_eq!(read(&again.to_tables().unwrap()), again, "{name}");
        stable += 1;
    }
    assert!(with_nodes >= 30 && stable >= 30, "{with_nodes} with nodes, {stable} written");
}

proptest! {
    #[test]
    fn any_machine_that_appears_in_order_survives_tables(mut machine in any_machine()) {
        machine.nodes.retain(|node| !node.cpus.is_empty());
        let count = machine.nodes.len();
        prop_assume!(machine.memory_bytes() > 0);
        let ids: Vec<NodeId> = machine.nodes.iter().map(|node| node.id).collect();
        for (index, old) in (0u32..).zip(ids) {
            let new = NodeId(index);
            machine.nodes[index as usize].id = new;
            machine.cpus.iter_mut().filter(|cpu| cpu.node == Some(old)).for_each(|cpu| cpu.node = Some(new));
            if machine.nodes[index as usize].memory_bytes > 0 {
                machine.ranges.push(range(u64::from(index) << 32, 1 << 30, index));
            }
        }
        machine.distances = Distances::uniform(count, 21);
        prop_assert_eq!(read(&machine.to_tables().unwrap()), as_tables(&machine));
    }
}
