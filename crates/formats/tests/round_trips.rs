//! Conversions from a machine to a format and back, for the features that each format represents.

mod own_machines;

use numalab_formats::hwloc::{self, read_xml, write_xml};
use numalab_formats::{Feature, libvirt, machine_toml, numactl, qemu, xen};
use numalab_topology::{
    AccessAttributes, AccessClass, Allowed, CpuSet, Distances, EmulatedNodes, EmulationSpec,
    HugePagePool, Machine, MemoryKind, MemorySideCache, MemoryTier, NodeId, ProximityDomain,
    UniformMachine,
};
use proptest::prelude::*;

/// Returns a machine that has every feature.
fn rich() -> Machine {
    let mut machine = own_machines::memory_only();
    for (index, node) in (0..).zip(&mut machine.nodes) {
        node.free_bytes = Some((index << 20) + 4096);
        node.proximity_domain = Some(ProximityDomain(10 + u32::try_from(index).unwrap()));
        node.huge_pages = vec![HugePagePool { page_bytes: 2 << 20, total: 4 + index, free: 3 }];
    }
    machine.nodes[3].memory_side_caches = vec![
        MemorySideCache { level: 2, size_bytes: 1 << 28, line_bytes: Some(64), ways: Some(1) },
        MemorySideCache { level: 1, size_bytes: 1 << 30, line_bytes: None, ways: None },
    ];
    machine.nodes[3].cxl = true;
    for cpu in &mut machine.cpus {
        cpu.apic_id = Some(2 * cpu.id.0);
    }
    machine.cpus[3].online = false;
    machine.tiers = vec![MemoryTier { id: 4, nodes: "0-3".parse().unwrap() }];
    machine.allowed = Some(Allowed {
        cpus: "0".parse().unwrap(),
        memory_nodes: "0-1".parse().unwrap(),
        isolated: "1".parse().unwrap(),
    });
    for group in machine.l3_groups() {
        machine.caches.push(numalab_topology::Cache {
            level: 3,
            kind: numalab_topology::CacheKind::Unified,
            size_bytes: Some(32 << 20),
            line_bytes: Some(64),
            ways: Some(16),
            cpus: group.cpus.intersection(&machine.online_cpus()),
        });
    }
    machine
}

#[test]
fn a_note_lists_the_features_that_a_format_loses() {
    let said = hwloc::CARRIED.loss(&rich()).unwrap().to_string();
    assert_eq!(
        said,
        "note: hwloc XML: cannot represent the place of offline cpus, free memory, free huge \
         pages, which memory belongs to CXL devices, proximity domains, APIC ids, ranges of \
         memory, whether latencies and bandwidths were seen by cpus, memory tiers, isolated cpus \
         that the process may use [not-carried]"
    );
    assert_eq!(hwloc::CARRIED.loss(&Machine::default()), None);
}

#[test]
fn guests_do_not_share_cpus_between_nodes_and_say_so() {
    let text = "available: 2 nodes (0-1)\nnode 0 cpus: 0 1\nnode 0 size: 9 MB\nnode 1 cpus: 0 1\n\
                node 1 size: 9 MB\nnode distances:\nnode 0 1\n  0:  10  10\n  1:  10  10\n";
    let machine = numactl::read(text).unwrap().value;
    for format in [qemu::CARRIED, libvirt::CARRIED, xen::CARRIED] {
        let said = format.loss(&machine).map(|loss| loss.to_string()).unwrap_or_default();
        assert!(said.contains("cpus that nodes share"), "{said}");
    }
    assert_eq!(numactl::CARRIED.loss(&machine), None);
}

#[test]
fn own_machines_survive_toml() {
    for (name, machine) in own_machines::all() {
        let text = machine_toml::write(&machine).unwrap();
        assert_eq!(machine_toml::read(&text).unwrap(), machine, "{name}\n{text}");
    }
}

#[test]
fn the_toml_example_survives_toml() {
    let machine = machine_toml::read(machine_toml::EXAMPLE).unwrap();
    let text = machine_toml::write(&machine).unwrap();
    assert_eq!(machine_toml::read(&text).unwrap(), machine, "{text}");
}

#[test]
fn the_performance_of_memory_survives_toml() {
    let file = machine_toml::read_file(machine_toml::EXAMPLE).unwrap();
    assert_eq!(file.memory.load.len(), 2);
    let text = machine_toml::write_file(&file).unwrap();
    assert_eq!(machine_toml::read_file(&text).unwrap(), file, "{text}");
}

#[test]
fn own_machines_survive_numactl() {
    for (name, machine) in own_machines::all() {
        let text = numactl::write(&machine);
        let reading = numactl::read(&text).unwrap();
        assert_eq!(reading.value, numactl::CARRIED.left(&machine), "{name}\n{text}");
        assert_eq!(reading.findings, [], "{name}");
        assert_eq!(numactl::write(&reading.value), text, "{name}");
    }
}

#[test]
fn a_machine_in_the_first_xml_version_lacks_features_of_the_second() {
    let mut expected = hwloc::CARRIED.left(&own_machines::memory_only());
    for feature in [Feature::HugePages, Feature::MemorySideCaches, Feature::Access] {
        feature.clear(&mut expected);
    }
    assert_eq!(read_xml(include_str!("lstopo_v1.xml")).unwrap().value, expected);
}

#[test]
fn sets_that_cross_are_refused_by_xml_with_the_cpus() {
    let mut machine = own_machines::two_nodes();
    machine.cpus[4].l3_group = Some(0);
    let error = write_xml(&machine).unwrap_err().to_string();
    assert_eq!(
        error,
        "lstopo XML cannot express that cpus 4-7 belong together but are partly in 0-7 and partly in 0-4"
    );
}

#[test]
fn endlessly_nested_caches_are_refused_by_xml() {
    let mut machine = own_machines::small_epyc();
    let one = machine.caches[0].clone();
    machine.caches.extend(std::iter::repeat_n(one, 10_000));
    assert!(write_xml(&machine).unwrap_err().to_string().contains("more than 128"));
}

#[test]
fn numbers_too_large_for_toml_are_refused() {
    let mut machine = own_machines::memory_only();
    machine.access[0].read_latency_ps = Some(u64::MAX);
    assert!(
        machine_toml::write(&machine).unwrap_err().to_string().contains("18446744073709551615")
    );
    let mut machine = own_machines::two_nodes();
    machine.nodes[0].cpus = CpuSet::new();
    assert!(
        machine_toml::write(&machine).unwrap_err().to_string().contains("node 0 lists cpus ``")
    );
}

/// Machines of every regular shape with nodes of every kind and all optional features.
fn any_machine() -> impl Strategy<Value = Machine> {
    let shape = (1u32..4, 1u32..3, 1u32..3, 1u32..4, 1usize..6);
    let rest =
        (any::<u64>(), any::<u8>(), proptest::collection::vec(any::<u8>(), 36), any::<u16>());
    (shape, rest).prop_map(
        |((packages, l3, threads, cores, nodes), (seed, flags, distances, online))| {
            let l3_groups = packages * l3;
            let shape = UniformMachine {
                cpus: l3_groups * cores * threads,
                threads_per_core: threads,
                packages,
                l3_groups,
                memory_bytes: seed >> 20,
            };
            let base = shape.build().unwrap();
            let mut machine =
                EmulationSpec::new(EmulatedNodes::Equal(nodes)).emulate(&base).unwrap();
            decorate(&mut machine, seed, flags, &distances, online);
            machine
        },
    )
}

fn decorate(machine: &mut Machine, seed: u64, flags: u8, distances: &[u8], online: u16) {
    let flag = |bit: u8| flags >> bit & 1 == 1;
    let nodes = machine.nodes.len();
    machine.distances = Distances::unknown(if flag(0) { nodes } else { 0 });
    for (index, &distance) in distances.iter().take(nodes * nodes).enumerate() {
        if distance > 20 {
            machine.distances.set(index / nodes, index % nodes, distance);
        }
    }
    for (cpu, bit) in machine.cpus.iter_mut().zip(0..16) {
        cpu.online = online >> bit & 1 == 0;
        cpu.apic_id = flag(1).then_some(cpu.id.0 * 2);
    }
    for (index, node) in machine.nodes.iter_mut().enumerate() {
        node.proximity_domain = flag(2).then_some(ProximityDomain(7 * node.id.0));
        node.free_bytes = flag(3).then_some(node.memory_bytes / 3);
        node.online = !(flag(4) && index == 0);
        node.cxl = flag(3) && index == 1;
        if flag(5) {
            node.huge_pages = vec![HugePagePool { page_bytes: 2 << 20, total: seed >> 1, free: 3 }];
            node.memory_side_caches = vec![MemorySideCache {
                level: 1,
                size_bytes: seed,
                line_bytes: flag(6).then_some(64),
                ways: flag(7).then_some(1),
            }];
        }
    }
    if flag(6) {
        add_attributes(machine, seed, flag(7), flag(1));
    }
    machine.allowed = flag(7).then(|| Allowed {
        cpus: machine.online_cpus(),
        memory_nodes: machine.memory_nodes(),
        ..Allowed::default()
    });
}

fn add_attributes(machine: &mut Machine, seed: u64, of_cpus: bool, hot_pluggable: bool) {
    machine.access = vec![AccessAttributes {
        initiator: NodeId(0),
        target: NodeId(0),
        class: if of_cpus { AccessClass::Cpu } else { AccessClass::Any },
        read_latency_ps: Some(seed >> 1),
        ..AccessAttributes::default()
    }];
    machine.tiers = vec![MemoryTier { id: 4, nodes: machine.memory_nodes() }];
    machine.ranges.iter_mut().for_each(|range| range.hot_pluggable = hot_pluggable);
    machine.ranges.iter_mut().for_each(|range| range.kind = MemoryKind::NonVolatile);
}

proptest! {
    #[test]
    fn any_machine_survives_toml(machine in any_machine()) {
        let text = machine_toml::write(&machine).unwrap();
        prop_assert_eq!(machine_toml::read(&text).unwrap(), machine, "{}", text);
    }

    #[test]
    fn any_online_machine_survives_numactl(mut machine in any_machine()) {
        machine.nodes.iter_mut().for_each(|node| node.online = true);
        if !machine.distances.is_complete() {
            machine.distances = Distances::default();
        }
        let text = numactl::write(&machine);
        prop_assert_eq!(numactl::read(&text).unwrap().value, numactl::CARRIED.left(&machine), "{}", text);
    }
}
