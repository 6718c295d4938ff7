//! Untrusted input, truncated, changed and made up: the boot loader's information, the firmware's
//! tables, and results on the serial port.

use numalab_formats::emulation;
use numalab_kernel::boot_info::{Area, BootInfo, BootInfoError};
use numalab_kernel::command::Numa;
use numalab_kernel::memory_map::{MOST_BYTES, Span};
use numalab_kernel::plan::Plan;
use numalab_kernel::tables::{self, Physical};
use numalab_topology::{Machine, UniformMachine};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;
/// The start address of the memory in these tests.
const BASE: u64 = 0xe_0000;

/// A piece of physical memory.
struct Memory(Vec<u8>);

impl Physical for Memory {
    fn read(&self, address: u64, bytes: usize) -> Option<&[u8]> {
        let start = usize::try_from(address.checked_sub(BASE)?).ok()?;
        self.0.get(start..start.checked_add(bytes)?)
    }
}

impl Memory {
    fn cut(&self, bytes: usize) -> Self {
        Self(self.0[..bytes].to_vec())
    }

    fn put(&mut self, address: u64, bytes: &[u8]) {
        let start = usize::try_from(address - BASE).expect("within");
        self.0[start..start + bytes.len()].copy_from_slice(bytes);
    }
}

/// Returns PVH start info at the base, followed by its map and command line.
fn pvh() -> Memory {
    let mut memory = Memory(vec![0; 256]);
    let (map, line) = (BASE + 64, BASE + 160);
    memory.put(BASE, &0x336e_c578_u32.to_le_bytes());
    memory.put(BASE + 4, &1_u32.to_le_bytes());
    memory.put(BASE + 24, &line.to_le_bytes());
    memory.put(BASE + 32, &0xf_5a00_u64.to_le_bytes());
    memory.put(BASE + 40, &map.to_le_bytes());
    memory.put(BASE + 48, &2_u32.to_le_bytes());
    for (place, (start, kind)) in [(0, 1_u32), (MIB, 2)].into_iter().enumerate() {
        let at = map + place as u64 * 24;
        memory.put(at, &u64::to_le_bytes(start));
        memory.put(at + 8, &MIB.to_le_bytes());
        memory.put(at + 16, &kind.to_le_bytes());
    }
    memory.put(line, b"work=none seed=3\0");
    memory
}

/// Tags of a command line, a map of one area and an RSDP.
fn multiboot2() -> Memory {
    let mut tags = Vec::new();
    let mut tag = |kind: u32, content: &[u8]| {
        tags.extend(kind.to_le_bytes());
        tags.extend(u32::try_from(content.len() + 8).expect("short").to_le_bytes());
        tags.extend(content);
        tags.resize(tags.len().next_multiple_of(8), 0);
    };
    tag(1, b"work=none\0");
    let mut map = [24_u32.to_le_bytes(), 0_u32.to_le_bytes()].concat();
    map.extend([0_u64.to_le_bytes(), MIB.to_le_bytes(), 1_u64.to_le_bytes()].concat());
    tag(6, &map);
    tag(15, b"RSD PTR ");
    tag(0, &[]);
    let mut memory = Memory(vec![0; tags.len() + 8]);
    memory.put(BASE, &u32::try_from(tags.len() + 8).expect("short").to_le_bytes());
    memory.put(BASE + 8, &tags);
    memory
}

/// Returns two nodes of 64 MiB with two cpus each.
fn two_nodes() -> Machine {
    let uniform = UniformMachine::of_packages(1, 4, 128 * MIB);
    let spec = emulation::parse("2", Some("10,21;21,10")).expect("a specification");
    spec.emulate(&uniform.build().expect("a machine")).expect("two nodes")
}

/// Returns an RSDP, an RSDT and the tables of a machine.
fn firmware(machine: &Machine) -> Memory {
    let mut memory = Memory(vec![0; 8192]);
    let written = machine.to_tables().expect("tables");
    let mut root = [b"RSDT".to_vec(), vec![0; 32]].concat();
    let mut at = BASE + 1024;
    for table in [written.srat, written.slit, written.madt] {
        memory.put(at, &table);
        root.extend(u32::try_from(at).expect("low").to_le_bytes());
        at = (at + table.len() as u64).next_multiple_of(64);
    }
    let length = u32::try_from(root.len()).expect("short");
    root[4..8].copy_from_slice(&length.to_le_bytes());
    memory.put(BASE + 64, &root);
    let mut rsdp = [b"RSD PTR ".to_vec(), vec![0; 12]].concat();
    rsdp[16..20].copy_from_slice(&u32::try_from(BASE + 64).expect("low").to_le_bytes());
    rsdp[8] = rsdp.iter().fold(0_u8, |sum, &byte| sum.wrapping_sub(byte));
    memory.put(BASE, &rsdp);
    memory
}

/// Checks that, whatever the tables contain, the plan serves all free memory once, to existing
/// nodes.
fn plan_is_sound(memory: &Memory, rsdp: Option<u64>) -> Plan {
    let free = [Span { start: MIB, end: 40 * MIB }, Span { start: 80 * MIB, end: 128 * MIB }];
    let found = tables::find(memory, rsdp);
    let plan = Plan::new(&found, &free, 0, &Numa::On).expect("no nodes are requested");
    let nodes = plan.machine.nodes.len();
    let frames: u64 = plan.ranges.iter().map(|range| range.frames).sum();
    assert_eq!(frames * 4096, free.iter().map(Span::bytes).sum::<u64>());
    assert!(nodes > 0 && plan.distances.len() == nodes * nodes);
    assert!(plan.ranges.is_sorted_by(|one, next| one.start < next.start));
    assert!(plan.cpu_nodes.iter().all(|node| usize::from(node.0) < nodes));
    for (own, row) in plan.fallback.iter().enumerate() {
        let mut all: Vec<usize> = row.iter().map(|node| node.0.into()).collect();
        assert_eq!(all[0], own);
        all.sort_unstable();
        assert!(all.into_iter().eq(0..nodes));
    }
    plan
}

/// A signal to this id would reset every cpu, the running one included.
#[test]
fn a_cpu_with_the_id_of_all_cpus_is_not_started() {
    let mut machine = two_nodes();
    machine.cpus[3].apic_id = Some(u32::MAX);
    let plan = plan_is_sound(&firmware(&machine), Some(BASE));
    let ids: Vec<u32> = plan.machine.cpus.iter().filter_map(|cpu| cpu.apic_id).collect();
    assert_eq!(ids, [0, 1, 2]);
    assert!(plan.findings.iter().any(|finding| finding.code == "cpu-broadcast-id"));
}

#[test]
fn a_loaders_information_is_read() {
    let info = BootInfo::pvh(&pvh(), BASE).expect("sound");
    assert_eq!((info.command_line.as_str(), info.rsdp), ("work=none seed=3", Some(0xf_5a00)));
    assert_eq!((info.areas.len(), info.usable()), (2, vec![Span { start: 0, end: MIB }]));
    let info = BootInfo::multiboot2(&multiboot2(), BASE).expect("sound");
    assert_eq!((info.command_line.as_str(), info.areas.len()), ("work=none", 1));
    assert!(info.rsdp.is_some());
}

#[test]
fn memory_that_the_kernel_does_not_map_is_neither_used_nor_read() {
    let span = |start, end| Span { start, end };
    let area = |span, usable| Area { span, usable };
    let areas = vec![
        area(span(0, MIB), true),
        area(span(MOST_BYTES - MIB, u64::MAX), true),
        area(span(MOST_BYTES, MOST_BYTES + MIB), true),
        area(span(8 << 30, 9 << 30), false),
    ];
    let info = BootInfo { areas, ..BootInfo::pvh(&pvh(), BASE).expect("sound") };
    assert_eq!(info.usable(), [span(0, MIB), span(MOST_BYTES - MIB, MOST_BYTES)]);
    let mapped: Vec<Span> = info.readable((8 << 30) + MIB).collect();
    assert_eq!(mapped, [span(0, MIB), span(8 << 30, (8 << 30) + MIB)]);
}

#[test]
fn truncated_information_of_a_loader_is_refused_or_partly_read() {
    let whole = pvh();
    for bytes in 0..whole.0.len() {
        if let Ok(info) = BootInfo::pvh(&whole.cut(bytes), BASE) {
            assert_eq!(info.areas.len(), 2, "{bytes} bytes");
        }
    }
    let whole = multiboot2();
    for bytes in 0..whole.0.len() {
        let read = BootInfo::multiboot2(&whole.cut(bytes), BASE);
        assert_eq!(read, Err(BootInfoError::Unreadable { address: BASE }), "{bytes} bytes");
    }
}

#[test]
fn tables_give_the_machine_and_every_truncation_gives_a_working_one() {
    let memory = firmware(&two_nodes());
    for rsdp in [Some(BASE), None] {
        let plan = plan_is_sound(&memory, rsdp);
        assert_eq!((plan.machine.nodes.len(), plan.cpu_nodes.len()), (2, 4));
        assert_eq!(plan.distances, [10, 21, 21, 10]);
        assert!(plan.findings.is_empty(), "{:?}", plan.findings);
    }
    let used = memory.0.iter().rposition(|&byte| byte != 0).expect("not empty");
    for bytes in (0..used).step_by(7) {
        let plan = plan_is_sound(&memory.cut(bytes), Some(BASE));
        assert!(!plan.findings.is_empty(), "{bytes} bytes");
    }
}

proptest! {
    #[test]
    fn no_bytes_of_a_loader_make_the_kernel_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        changed in prop::collection::vec((0_usize..256, any::<u8>()), 0..6),
    ) {
        let made_up = Memory(bytes);
        let _ = BootInfo::pvh(&made_up, BASE);
        let _ = BootInfo::multiboot2(&made_up, BASE);
        for mut memory in [pvh(), multiboot2()] {
            for &(place, byte) in &changed {
                let place = place % memory.0.len();
                memory.0[place] = byte;
            }
            let _ = BootInfo::pvh(&memory, BASE);
            let _ = BootInfo::multiboot2(&memory, BASE);
        }
    }

    #[test]
    fn tables_with_any_bytes_changed_leave_a_working_machine(
        changed in prop::collection::vec((0_usize..2048, any::<u8>()), 1..12),
    ) {
        let mut memory = firmware(&two_nodes());
        for (place, byte) in changed {
            memory.0[place] = byte;
        }
        plan_is_sound(&memory, Some(BASE));
        plan_is_sound(&memory, None);
    }
}
