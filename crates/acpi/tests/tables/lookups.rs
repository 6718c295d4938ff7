//! The inputs of a topology: processors, memory, domains, latencies, bandwidths.

use numalab_acpi::hmat::{Access, CellValue, DataType};
use numalab_acpi::srat::{Entry, LocalApicAffinity, MemoryAffinity, MemoryFlags, ProcessorId};
use numalab_acpi::{AnyTable, Cedt, Header, Hmat, List, Madt, Signature, Srat, hmat, madt, srat};

use crate::support::{built, named};

fn locality<'a>(data_type: DataType, base_unit: u64, values: &'a [u16]) -> hmat::Entry<'a> {
    hmat::Entry::Locality(hmat::Locality {
        data_type: data_type.into(),
        base_unit,
        initiators: List::Values(&[0, 4]),
        targets: List::Values(&[0, 4, 9]),
        values: List::Values(values),
        ..Default::default()
    })
}

fn hmat(revision: u8, entries: &[hmat::Entry<'_>]) -> Vec<u8> {
    let header = Header::new(Signature::HMAT, revision);
    built::<hmat::Layout>(header, hmat::Fixed::default(), entries)
}

#[test]
fn revision_2_values_times_the_base_unit_are_picoseconds_and_megabytes() {
    let bytes = hmat(
        2,
        &[
            locality(DataType::AccessLatency, 1000, &[80, 120, 350, 120, 80, 0]),
            locality(DataType::AccessBandwidth, 100, &[1024, 512, 0xffff, 512, 1024, 99]),
            locality(DataType::WriteLatency, 1000, &[90, 130, 400, 130, 90, 400]),
        ],
    );
    let table = Hmat::read(&bytes).expect("a HMAT");
    assert_eq!(table.latency_ps(0, 9, Access::Read), Some(CellValue::Value(350_000)));
    assert_eq!(table.latency_ps(0, 9, Access::Write), Some(CellValue::Value(400_000)));
    assert_eq!(table.latency_ps(4, 9, Access::Read), Some(CellValue::Unknown));
    assert_eq!(table.latency_ps(9, 0, Access::Read), None);
    assert_eq!(table.bandwidth_mb_per_s(4, 4, Access::Read), Some(CellValue::Value(102_400)));
    assert_eq!(table.bandwidth_mb_per_s(0, 9, Access::Read), Some(CellValue::Unreachable));
}

#[test]
fn a_cell_of_0_is_replaced_by_that_of_a_matrix_with_a_value() {
    let bytes = hmat(
        2,
        &[
            locality(DataType::ReadBandwidth, 1, &[100, 0, 0xffff, 0, 100, 0]),
            locality(DataType::AccessBandwidth, 1, &[7, 50, 60, 50, 7, 0]),
        ],
    );
    let table = Hmat::read(&bytes).expect("a HMAT");
    let read = |from, to| table.bandwidth_mb_per_s(from, to, Access::Read);
    assert_eq!(read(0, 0), Some(CellValue::Value(100)));
    assert_eq!(read(0, 4), Some(CellValue::Value(50)));
    assert_eq!(read(0, 9), Some(CellValue::Unreachable));
    assert_eq!(read(4, 9), Some(CellValue::Unknown));
    assert_eq!(table.bandwidth_mb_per_s(0, 0, Access::Write), Some(CellValue::Value(7)));
}

#[test]
fn revision_1_values_are_tenths_of_a_nanosecond_and_of_a_megabyte() {
    let bytes = hmat(
        1,
        &[
            locality(DataType::ReadLatency, 10, &[80, 120, 350, 120, 80, 1]),
            locality(DataType::ReadBandwidth, 1, &[1024, 512, 11, 512, 1024, 9]),
        ],
    );
    let table = Hmat::read(&bytes).expect("a HMAT");
    // 80 * 10 tenths of a nanosecond.
    assert_eq!(table.latency_ps(0, 0, Access::Read), Some(CellValue::Value(80_000)));
    // 11 tenths of a MB/s, rounded up.
    assert_eq!(table.bandwidth_mb_per_s(0, 9, Access::Read), Some(CellValue::Value(2)));
}

#[test]
fn a_value_beyond_64_bits_has_no_meaning() {
    assert_eq!(CellValue::new(2, 0, u64::MAX, 2), CellValue::Meaningless);
    assert_eq!(CellValue::new(1, 0, u64::MAX / 50, 1), CellValue::Meaningless);
    assert_eq!(CellValue::new(2, 6, 1, 1), CellValue::Meaningless);
    assert_eq!(CellValue::new(2, 0, u64::MAX, 1), CellValue::Value(u64::MAX));
}

#[test]
fn cells_give_both_domains() {
    let values = [1, 2, 3, 4, 5, 6];
    let bytes = hmat(2, &[locality(DataType::AccessLatency, 1, &values)]);
    let table = Hmat::read(&bytes).expect("a HMAT");
    let cells: Vec<_> = table.localities().flat_map(|at| at.entry.cells()).collect();
    let expected = [(0, 0, 1), (0, 4, 2), (0, 9, 3), (4, 0, 4), (4, 4, 5), (4, 9, 6)];
    assert_eq!(cells, expected);
}

#[test]
fn a_revision_1_srat_has_domains_of_8_bits() {
    for (revision, domain) in [(1, 0xdd), (2, 0xaabb_ccdd), (3, 0xaabb_ccdd)] {
        let cpu = Entry::LocalApic(LocalApicAffinity::new(7, 0xaabb_ccdd));
        let memory = Entry::Memory(MemoryAffinity {
            domain: 0xaabb_ccdd,
            length_bytes: 4096,
            flags: MemoryFlags::ENABLED,
            ..Default::default()
        });
        let header = Header::new(Signature::SRAT, revision);
        let bytes = built::<srat::Layout>(header, srat::Fixed::new(), &[cpu, memory]);
        let table = Srat::read(&bytes).expect("a SRAT");
        let processor = table.processors().next().expect("a processor");
        assert_eq!((processor.id, processor.domain), (ProcessorId::Apic(7), domain));
        assert_eq!(table.memory().next().expect("memory").domain, domain);
        assert!(table.domains().all(|at| at.entry == domain));
    }
}

#[test]
fn a_gicc_has_an_mpidr_since_acpi_5_1() {
    let mut extension = [0; 42];
    extension[28..36].copy_from_slice(&0x8000_0001_u64.to_le_bytes());
    for (length, mpidr) in [(0, None), (36, Some(0x8000_0001)), (42, Some(0x8000_0001))] {
        let gicc = madt::Gicc {
            processor_uid: 5,
            flags: madt::GiccFlags::ENABLED,
            extension: &extension[..length],
            ..Default::default()
        };
        let header = Header::new(Signature::MADT, 6);
        let bytes =
            built::<madt::Layout>(header, madt::Fixed::default(), &[madt::Entry::Gicc(gicc)]);
        let table = Madt::read(&bytes).expect("a MADT");
        let processor = table.processors().next().expect("a processor");
        assert_eq!(processor.hardware, madt::HardwareId::Mpidr(mpidr));
        assert_eq!((processor.id, processor.uid), (ProcessorId::Gicc(5), 5));
    }
}

#[test]
fn a_qemu_cedt_gives_its_windows_and_bridges() {
    let Some(sample) = named("qemu10.2.2-x86-q35-cxl.CEDT.bin") else {
        return;
    };
    let table = Cedt::read(&sample.bytes).expect("a CEDT");
    let bridges: Vec<u32> = table.host_bridges().map(|at| at.entry.uid).collect();
    assert_eq!(bridges, [222, 12]);
    let windows: Vec<_> = table
        .windows()
        .map(|at| (at.entry.base, at.entry.size_bytes, at.entry.targets.iter().collect::<Vec<_>>()))
        .collect();
    assert_eq!(
        windows,
        [(0x1_1000_0000, 4 << 30, vec![12]), (0x2_1000_0000, 4 << 30, vec![12, 222]),]
    );
}

#[test]
fn a_table_prints_a_line_per_entry() {
    let Some(sample) = named("qgen-4node-12g-hole.SRAT.bin") else {
        return;
    };
    let table = AnyTable::read(&sample.bytes).expect("a SRAT");
    let text = table.to_string();
    let AnyTable::Srat(srat) = table else { panic!("not a SRAT") };
    assert_eq!(text.lines().count(), 1 + srat.entries().count());
    assert!(text.contains("\n0x0030 local APIC 0: domain 0, enabled\n"), "{text}");
}
