//! Each problem is reported at its place, and only there.

mod affinities;
mod limits;
mod matrices;
mod processors;
mod windows;

use numalab_acpi::cedt::{FixedMemoryWindow, HostBridge, WindowRestrictions};
use numalab_acpi::hmat::{Cache, CacheAttributes, DataType, Locality, ProximityAttributes};
use numalab_acpi::madt::{Gicc, GiccFlags, LocalApic, LocalApicFlags, LocalX2apic};
use numalab_acpi::srat::{
    AffinityFlags, LocalApicAffinity, LocalX2apicAffinity, MemoryAffinity, MemoryFlags, ProcessorId,
};
use numalab_acpi::{
    AnyTable, Finding, Header, List, Problem, RawEntry, ScratchTooShort, Severity, Signature,
    Tables, cedt, check, hmat, madt, slit, srat,
};

use crate::support::{built, codes, findings, sum_again};

const GIB: u64 = 1 << 30;

fn memory(domain: u32, base: u64, length_bytes: u64) -> srat::Entry<'static> {
    let flags = MemoryFlags::ENABLED;
    let range = MemoryAffinity { domain, base, length_bytes, flags, ..Default::default() };
    srat::Entry::Memory(range)
}

fn cpu(apic_id: u8, domain: u32) -> srat::Entry<'static> {
    srat::Entry::LocalApic(LocalApicAffinity::new(apic_id, domain))
}

fn x2apic(x2apic_id: u32, domain: u32) -> srat::Entry<'static> {
    let flags = AffinityFlags::ENABLED;
    let cpu = LocalX2apicAffinity { domain, x2apic_id, flags, ..Default::default() };
    srat::Entry::LocalX2apic(cpu)
}

fn srat(entries: &[srat::Entry<'_>]) -> Vec<u8> {
    built::<srat::Layout>(Header::new(Signature::SRAT, 3), srat::Fixed::new(), entries)
}

fn madt(revision: u8, entries: &[madt::Entry<'_>]) -> Vec<u8> {
    built::<madt::Layout>(Header::new(Signature::MADT, revision), madt::Fixed::default(), entries)
}

fn apic(apic_id: u8) -> madt::Entry<'static> {
    let flags = LocalApicFlags::ENABLED;
    madt::Entry::LocalApic(LocalApic { processor_uid: apic_id, apic_id, flags })
}

fn hmat(revision: u8, entries: &[hmat::Entry<'_>]) -> Vec<u8> {
    built::<hmat::Layout>(Header::new(Signature::HMAT, revision), hmat::Fixed::default(), entries)
}

fn cedt(entries: &[cedt::Entry<'_>]) -> Vec<u8> {
    built::<cedt::Layout>(Header::new(Signature::CEDT, 1), (), entries)
}

fn slit(rows: usize, cells: &[u8]) -> Vec<u8> {
    let mut buffer = vec![0; slit::size_bytes(rows).expect("small")];
    let header = Header::new(Signature::SLIT, 1);
    slit::build(&mut buffer, header, rows, cells).expect("fits").to_vec()
}

fn together(tables: &[Vec<u8>]) -> Vec<Finding> {
    let mut all = Tables::default();
    for table in tables {
        all.insert(AnyTable::read(table).expect("readable"));
    }
    findings(&all)
}

fn table_findings(bytes: &[u8]) -> Vec<Finding> {
    findings(&AnyTable::read(bytes).expect("readable").into())
}

#[test]
fn a_good_machine_has_no_findings() {
    let initiators = [0, 1];
    let locality = Locality {
        data_type: DataType::AccessLatency.into(),
        base_unit: 1000,
        initiators: List::Values(&initiators),
        targets: List::Values(&initiators),
        values: List::Values(&[80, 140, 140, 80]),
        ..Default::default()
    };
    let tables = [
        srat(&[memory(0, 0, GIB), memory(1, GIB, GIB), cpu(0, 0), cpu(2, 1)]),
        slit(2, &[10, 20, 20, 10]),
        madt(5, &[apic(0), apic(2)]),
        hmat(2, &[hmat::Entry::Locality(locality)]),
    ];
    assert_eq!(together(&tables), []);
}

#[test]
fn a_wrong_checksum_is_found() {
    let mut bytes = srat(&[memory(0, 0, GIB)]);
    bytes[9] = bytes[9].wrapping_add(1);
    assert_eq!(codes(&bytes), ["checksum-wrong"]);
}

#[test]
fn bytes_after_the_table_are_noted_and_not_read() {
    let mut bytes = srat(&[memory(0, 0, GIB)]);
    bytes.extend([1, 40, 0]);
    let found = table_findings(&bytes);
    assert_eq!(found[0].problem, Problem::BytesAfterTable { bytes: 3 });
    assert_eq!((found.len(), found[0].offset), (1, 88));
}

#[test]
fn too_short_tables_are_refused() {
    let bytes = srat(&[]);
    assert_eq!(codes(&bytes[..3]), ["too-short"]);
    assert_eq!(codes(&bytes[..35]), ["too-short"]);
    assert_eq!(codes(&bytes[..40]), ["truncated"]);
    assert_eq!(codes(b"DSDTaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), ["signature-unknown"]);
    let other = numalab_acpi::Slit::read(&bytes).map(|_| ()).expect_err("a SRAT");
    assert_eq!(other.code(), "signature-mismatch");
}

#[test]
fn an_entry_of_the_wrong_length_is_found_and_the_next_is_read() {
    let memory_of = |length: usize| {
        let mut bytes = vec![1, u8::try_from(length).expect("small")];
        bytes.resize(length, 0);
        bytes
    };
    let (short, long) = (memory_of(39), memory_of(44));
    let bytes = srat(&[
        srat::Entry::Raw(RawEntry { kind: 1, bytes: &short }),
        srat::Entry::Raw(RawEntry { kind: 1, bytes: &long }),
        memory(0, 0, GIB),
    ]);
    let found = table_findings(&bytes);
    let problems: Vec<_> = found.iter().map(|finding| finding.problem).collect();
    assert_eq!(
        problems,
        [
            Problem::EntryTooShort { kind: 1, length: 39, expected: 40 },
            Problem::EntryTooLong { kind: 1, length: 44, expected: 40 },
        ]
    );
    let table = numalab_acpi::Srat::read(&bytes).expect("readable");
    assert_eq!(table.memory().count(), 2);
}

#[test]
fn a_blank_entry_stops_the_reader_with_a_warning_and_a_wrong_length_with_an_error() {
    let blank = [0; 16];
    let mut bytes = srat(&[
        memory(0, 0, GIB),
        srat::Entry::Raw(RawEntry { kind: 0, bytes: &blank }),
        memory(0, GIB, GIB),
    ]);
    let found = table_findings(&bytes);
    assert_eq!(found[0].problem, Problem::ZeroFill { zeros: 16, unread: 56 });
    assert_eq!((found[0].offset, found[0].severity()), (88, Severity::Warning));
    bytes[91] = 1;
    sum_again(&mut bytes);
    let found = table_findings(&bytes);
    let expected = Problem::EntryLengthInvalid { kind: 0, length: 0, minimum: 2 };
    assert_eq!((found[0].problem, found[0].severity()), (expected, Severity::Error));
    assert_eq!(
        codes(&srat(&[memory(0, 0, GIB), srat::Entry::Raw(RawEntry { kind: 9, bytes: &[9] })])),
        ["trailing-bytes"]
    );
}

#[test]
fn contradictions_between_tables_are_found() {
    let links = [hmat::Entry::Cache(Cache { memory: 9, ..Default::default() })];
    let found = together(&[
        srat(&[memory(0, 0, GIB), memory(2, GIB, GIB), cpu(0, 0), cpu(1, 0)]),
        slit(2, &[10, 20, 20, 10]),
        madt(5, &[apic(0), apic(5)]),
        hmat(2, &links),
    ]);
    let problems: Vec<_> = found.iter().map(|f| (f.table, f.offset, f.problem)).collect();
    assert_eq!(
        problems,
        [
            (Signature::MADT, 52, Problem::ProcessorNotInSrat { processor: ProcessorId::Apic(5) }),
            (Signature::SRAT, 144, Problem::ProcessorNotInMadt { processor: ProcessorId::Apic(1) }),
            (Signature::SRAT, 88, Problem::DomainWithoutSlitRow { domain: 2, localities: 2 }),
            (Signature::SLIT, 46, Problem::SlitRowWithoutDomain { locality: 1 }),
            (Signature::HMAT, 40, Problem::HmatDomainNotInSrat { role: "memory", domain: 9 }),
        ]
    );
}

#[test]
fn too_little_scratch_is_refused_before_any_finding() {
    let bytes = srat(&[memory(0, 0, 0), cpu(0, 0)]);
    let tables = Tables::from(AnyTable::read(&bytes).expect("readable"));
    let mut visits = 0;
    let refused = check(&tables, &mut [Default::default()], &mut |_| visits += 1);
    assert_eq!(refused, Err(ScratchTooShort { needed: 2, have: 1 }));
    assert_eq!(visits, 0);
}
