//! Each problem is found at its place, and not where it is not.

use numalab_acpi::cedt::{FixedMemoryWindow, HostBridge};
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
    let range = MemoryAffinity {
        domain,
        base,
        length_bytes,
        flags,
        ..Default::default()
    };
    srat::Entry::Memory(range)
}

fn cpu(apic_id: u8, domain: u32) -> srat::Entry<'static> {
    srat::Entry::LocalApic(LocalApicAffinity::new(apic_id, domain))
}

fn x2apic(x2apic_id: u32, domain: u32) -> srat::Entry<'static> {
    let flags = AffinityFlags::ENABLED;
    let cpu = LocalX2apicAffinity {
        domain,
        x2apic_id,
        flags,
        ..Default::default()
    };
    srat::Entry::LocalX2apic(cpu)
}

fn srat(entries: &[srat::Entry<'_>]) -> Vec<u8> {
    built::<srat::Layout>(Header::new(Signature::SRAT, 3), srat::Fixed::new(), entries)
}

fn madt(revision: u8, entries: &[madt::Entry<'_>]) -> Vec<u8> {
    built::<madt::Layout>(
        Header::new(Signature::MADT, revision),
        madt::Fixed::default(),
        entries,
    )
}

fn apic(apic_id: u8) -> madt::Entry<'static> {
    let flags = LocalApicFlags::ENABLED;
    madt::Entry::LocalApic(LocalApic {
        processor_uid: apic_id,
        apic_id,
        flags,
    })
}

fn hmat(revision: u8, entries: &[hmat::Entry<'_>]) -> Vec<u8> {
    built::<hmat::Layout>(
        Header::new(Signature::HMAT, revision),
        hmat::Fixed::default(),
        entries,
    )
}

fn cedt(entries: &[cedt::Entry<'_>]) -> Vec<u8> {
    built::<cedt::Layout>(Header::new(Signature::CEDT, 1), (), entries)
}

fn slit(rows: usize, cells: &[u8]) -> Vec<u8> {
    let mut buffer = vec![0; slit::size_bytes(rows).expect("small")];
    let header = Header::new(Signature::SLIT, 1);
    slit::build(&mut buffer, header, rows, cells)
        .expect("fits")
        .to_vec()
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
    assert_eq!(
        codes(b"DSDTaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
        ["signature-unknown"]
    );
    let other = numalab_acpi::Slit::read(&bytes)
        .map(|_| ())
        .expect_err("a SRAT");
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
        srat::Entry::Raw(RawEntry {
            kind: 1,
            bytes: &short,
        }),
        srat::Entry::Raw(RawEntry {
            kind: 1,
            bytes: &long,
        }),
        memory(0, 0, GIB),
    ]);
    let found = table_findings(&bytes);
    let problems: Vec<_> = found.iter().map(|finding| finding.problem).collect();
    assert_eq!(
        problems,
        [
            Problem::EntryTooShort {
                kind: 1,
                length: 39,
                expected: 40
            },
            Problem::EntryTooLong {
                kind: 1,
                length: 44,
                expected: 40
            },
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
        srat::Entry::Raw(RawEntry {
            kind: 0,
            bytes: &blank,
        }),
        memory(0, GIB, GIB),
    ]);
    let found = table_findings(&bytes);
    assert_eq!(
        found[0].problem,
        Problem::ZeroFill {
            zeros: 16,
            unread: 56
        }
    );
    assert_eq!(
        (found[0].offset, found[0].severity()),
        (88, Severity::Warning)
    );
    bytes[91] = 1;
    sum_again(&mut bytes);
    let found = table_findings(&bytes);
    let expected = Problem::EntryLengthInvalid {
        kind: 0,
        length: 0,
        minimum: 2,
    };
    assert_eq!(
        (found[0].problem, found[0].severity()),
        (expected, Severity::Error)
    );
    assert_eq!(
        codes(&srat(&[
            memory(0, 0, GIB),
            srat::Entry::Raw(RawEntry {
                kind: 9,
                bytes: &[9]
            })
        ])),
        ["trailing-bytes"]
    );
}

#[test]
fn memory_of_two_domains_that_overlaps_is_found_even_behind_a_longer_range() {
    // The long range hides the second from the third, which overlaps both.
    let bytes = srat(&[memory(0, 0, 100), memory(1, 10, 20), memory(0, 25, 10)]);
    let found = table_findings(&bytes);
    assert_eq!(
        found.iter().map(Finding::code).collect::<Vec<_>>(),
        [
            "memory-overlaps-across-domains",
            "memory-overlaps-across-domains",
        ]
    );
    let expected = Problem::MemoryOverlapsAcrossDomains {
        base: 25,
        domain: 0,
        other_domain: 1,
        other: 88,
    };
    assert_eq!((found[1].problem, found[1].offset), (expected, 128));
}

#[test]
fn overlap_is_found_exactly_where_a_pairwise_comparison_finds_it() {
    let mut state = 1_u64;
    let mut random = |bound: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    for _ in 0..2000 {
        let ranges: Vec<(u32, u64, u64)> = (0..random(7))
            .map(|_| {
                (
                    u32::try_from(random(3)).expect("small"),
                    random(40),
                    1 + random(12),
                )
            })
            .collect();
        let entries: Vec<_> = ranges.iter().map(|r| memory(r.0, r.1, r.2)).collect();
        let found = table_findings(&srat(&entries));
        let across = found
            .iter()
            .filter(|f| f.code() == "memory-overlaps-across-domains")
            .count();
        let overlapping = found
            .iter()
            .filter(|f| f.code().starts_with("memory-overlaps"))
            .count();
        // A range counts if it overlaps one that sorts before it.
        let mut sorted: Vec<_> = ranges.iter().enumerate().collect();
        sorted.sort_by_key(|(at, r)| (r.1, *at));
        let before = |n: usize, other_only: bool| {
            let r = sorted[n].1;
            sorted[..n]
                .iter()
                .any(|(_, o)| o.1 + o.2 > r.1 && (!other_only || o.0 != r.0))
        };
        let expected = (0..sorted.len()).filter(|n| before(*n, true)).count();
        assert_eq!(across, expected, "{ranges:?}");
        let expected = (0..sorted.len()).filter(|n| before(*n, false)).count();
        assert_eq!(overlapping, expected, "{ranges:?}");
    }
}

#[test]
fn odd_memory_ranges_are_found() {
    let hot = MemoryFlags::ENABLED.with(MemoryFlags::HOT_PLUGGABLE);
    let plug = MemoryAffinity {
        base: 5 * GIB,
        flags: hot,
        ..Default::default()
    };
    let good = memory(0, 0, GIB);
    assert_eq!(
        codes(&srat(&[good, srat::Entry::Memory(plug)])),
        ["hot-plug-empty"]
    );
    assert_eq!(codes(&srat(&[good, memory(0, GIB, 0)])), ["memory-empty"]);
    assert_eq!(
        codes(&srat(&[good, memory(0, u64::MAX, 2)])),
        ["range-wraps"]
    );
    assert_eq!(codes(&srat(&[good, memory(0, u64::MAX, 1)])), [""; 0]);
    assert_eq!(codes(&srat(&[cpu(0, 0)])), ["no-memory"]);
    assert_eq!(
        codes(&srat(&[good, memory(1024, GIB, GIB)])),
        ["domain-too-large"]
    );
}

#[test]
fn a_processor_given_twice_is_found_across_entry_types() {
    let good = memory(0, 0, GIB);
    assert_eq!(
        codes(&srat(&[good, cpu(3, 0), x2apic(3, 0)])),
        ["processor-repeated"]
    );
    let found = table_findings(&srat(&[good, cpu(3, 0), x2apic(3, 1)]));
    let expected = Problem::ProcessorInTwoDomains {
        processor: ProcessorId::Apic(3),
        domain: 1,
        other_domain: 0,
        other: 88,
    };
    assert_eq!(found[0].problem, expected);
    assert_eq!(codes(&srat(&[good, x2apic(3, 0), x2apic(4, 1)])), [""; 0]);
}

#[test]
fn reserved_fields_are_noted_and_undefined_flags_warned_of() {
    let range = MemoryAffinity {
        length_bytes: GIB,
        reserved3: 1,
        flags: MemoryFlags(0x11),
        ..Default::default()
    };
    let found = table_findings(&srat(&[srat::Entry::Memory(range)]));
    let odd: Vec<_> = found
        .iter()
        .map(|f| (f.code(), f.offset, f.severity()))
        .collect();
    assert_eq!(
        odd,
        [
            ("flags-undefined", 48 + 28, Severity::Warning),
            ("reserved-not-zero", 48 + 32, Severity::Note),
        ]
    );
    let mut header = srat(&[memory(0, 0, GIB)]);
    (header[36], header[40]) = (2, 1);
    sum_again(&mut header);
    assert_eq!(
        codes(&header),
        ["table-revision-not-one", "reserved-not-zero"]
    );
}

#[test]
fn distances_that_linux_refuses_are_errors() {
    let cell = |value: u8| slit(2, &[10, value, 20, 10]);
    assert_eq!(codes(&cell(9)), ["distance-reserved"]);
    assert_eq!(codes(&cell(10)), ["remote-distance-ten"]);
    assert_eq!(codes(&cell(21)), ["distance-asymmetric"]);
    assert_eq!(
        codes(&slit(2, &[0, 20, 20, 10])),
        ["local-distance-not-ten"]
    );
    let found = table_findings(&slit(2, &[10, 20, 20, 255]));
    let expected = Problem::LocalDistanceNotTen {
        locality: 1,
        distance: 255,
    };
    assert_eq!((found[0].problem, found[0].offset), (expected, 47));
}

#[test]
fn a_slit_without_rows_or_without_room_for_them_is_refused() {
    assert_eq!(codes(&slit(0, &[])), ["no-localities"]);
    let mut bytes = slit(2, &[10, 20, 20, 10]);
    bytes[36] = 3;
    assert_eq!(codes(&bytes), ["matrix-overruns"]);
    bytes[36..44].copy_from_slice(&u64::MAX.to_le_bytes());
    assert_eq!(codes(&bytes), ["matrix-overruns"]);
}

#[test]
fn odd_hmat_fields_are_found() {
    let rows = [0];
    let good = Locality {
        base_unit: 1000,
        initiators: List::Values(&rows),
        targets: List::Values(&rows),
        values: List::Values(&[80]),
        ..Default::default()
    };
    let of = |locality: Locality<'_>| codes(&hmat(2, &[hmat::Entry::Locality(locality)]));
    assert_eq!(of(good), [""; 0]);
    assert_eq!(
        of(Locality {
            data_type: 6,
            ..good
        }),
        ["field-undefined"]
    );
    assert_eq!(
        of(Locality {
            base_unit: 0,
            ..good
        }),
        ["field-zero"]
    );
    assert_eq!(
        of(Locality {
            base_unit: 1 << 28,
            ..good
        }),
        ["base-unit-overflow"]
    );
    assert_eq!(
        of(Locality {
            base_unit: u64::MAX,
            ..good
        }),
        ["base-unit-overflow"]
    );
    assert_eq!(
        of(Locality {
            reserved2: 1,
            ..good
        }),
        ["reserved-not-zero"]
    );
    let bits = 0x3321;
    let cache = Cache {
        attributes: CacheAttributes { bits },
        ..Default::default()
    };
    let found = codes(&hmat(2, &[hmat::Entry::Cache(cache)]));
    assert_eq!(found, ["field-undefined", "field-undefined"]);
    let link = hmat::Entry::Proximity(ProximityAttributes {
        base: GIB,
        ..Default::default()
    });
    assert_eq!(codes(&hmat(1, &[link])), [""; 0]);
    assert_eq!(codes(&hmat(2, &[link])), ["reserved-not-zero"]);
    assert_eq!(codes(&hmat(3, &[])), ["revision-unknown"]);
}

#[test]
fn a_matrix_longer_than_its_entry_is_found_and_kept_raw() {
    let rows = [0];
    let locality = Locality {
        base_unit: 1,
        initiators: List::Values(&rows),
        targets: List::Values(&rows),
        values: List::Values(&[1]),
        ..Default::default()
    };
    let mut bytes = hmat(2, &[hmat::Entry::Locality(locality)]);
    bytes[52] = 2;
    sum_again(&mut bytes);
    let found = table_findings(&bytes);
    assert_eq!(
        found[0].problem,
        Problem::EntryTooShort {
            kind: 1,
            length: 42,
            expected: 48
        }
    );
    bytes[52..60].fill(0xff);
    sum_again(&mut bytes);
    assert_eq!(codes(&bytes), ["entry-too-short"]);
    let AnyTable::Hmat(table) = AnyTable::read(&bytes).expect("readable") else {
        panic!()
    };
    assert_eq!(table.localities().count(), 0);
    assert_eq!(table.entries().count(), 1);
}

#[test]
fn odd_processors_of_a_madt_are_found() {
    let both = LocalApicFlags::ENABLED.with(LocalApicFlags::ONLINE_CAPABLE);
    let cpu = |flags| {
        madt::Entry::LocalApic(LocalApic {
            processor_uid: 0,
            apic_id: 0,
            flags,
        })
    };
    assert_eq!(
        codes(&madt(5, &[cpu(both)])),
        ["enabled-and-online-capable"]
    );
    assert_eq!(codes(&madt(4, &[cpu(both)])), [""; 0]);
    assert_eq!(
        codes(&madt(5, &[cpu(LocalApicFlags::ONLINE_CAPABLE)])),
        [""; 0]
    );
    assert_eq!(
        codes(&madt(5, &[apic(1), apic(1)])),
        ["processor-id-shared"]
    );
    assert_eq!(codes(&madt(5, &[cpu(LocalApicFlags(0)), apic(0)])), [""; 0]);
    let everyone = LocalX2apic {
        x2apic_id: u32::MAX,
        flags: LocalApicFlags::ENABLED,
        ..Default::default()
    };
    let found = codes(&madt(5, &[madt::Entry::LocalX2apic(everyone)]));
    assert_eq!(found, ["processor-id-broadcast"]);
}

#[test]
fn a_gicc_is_judged_by_the_version_its_length_tells() {
    let extension = [0; 50];
    let of = |length: usize, flags: u32| {
        let gicc = Gicc {
            flags: GiccFlags(flags),
            extension: &extension[..length - 40],
            ..Default::default()
        };
        codes(&madt(6, &[madt::Entry::Gicc(gicc)]))
    };
    for length in [40, 76] {
        assert_eq!(
            (of(length, 0b11), of(length, 0b100)),
            (vec![], vec!["flags-undefined"])
        );
    }
    assert_eq!(
        (of(80, 0b111), of(80, 0b1000)),
        (vec![], vec!["flags-undefined"])
    );
    assert_eq!(
        (of(82, 0b1110), of(82, 0b1001)),
        (vec![], vec!["enabled-and-online-capable"])
    );
    assert_eq!(of(90, 0), ["entry-too-long"]);
}

#[test]
fn interrupt_controllers_that_repeat_an_id_are_found() {
    let io_apic = |id: u8| [1, 12, id, 0, 0, 0, 0xc0, 0xfe, 0, 0, 0, 0];
    let (first, second) = (io_apic(2), io_apic(2));
    let raw = |bytes| madt::Entry::Raw(RawEntry { kind: 1, bytes });
    let found = table_findings(&madt(3, &[raw(&first), raw(&second)]));
    let expected = Problem::IdRepeated {
        kind: 1,
        id: 2,
        first: 44,
    };
    assert_eq!((found[0].problem, found[0].offset), (expected, 56));
    let other = io_apic(3);
    assert_eq!(codes(&madt(3, &[raw(&first), raw(&other)])), [""; 0]);
}

#[test]
fn entries_of_reserved_and_of_makers_types_are_told_apart() {
    let raw = |bytes: &'static [u8]| {
        madt::Entry::Raw(RawEntry {
            kind: bytes[0].into(),
            bytes,
        })
    };
    assert_eq!(codes(&madt(5, &[raw(&[0x7f, 2])])), ["entry-reserved"]);
    assert_eq!(codes(&madt(5, &[raw(&[0x80, 2])])), ["entry-unknown"]);
    assert_eq!(codes(&madt(5, &[raw(&[4, 6, 0xff, 0, 0, 1])])), [""; 0]);
}

#[test]
fn odd_cxl_windows_are_found() {
    let bridge = cedt::Entry::HostBridge(HostBridge {
        uid: 7,
        version: 1,
        ..Default::default()
    });
    let targets = [7];
    let good = FixedMemoryWindow {
        base: GIB,
        size_bytes: GIB,
        targets: List::Values(&targets),
        ..Default::default()
    };
    let of = |windows: &[FixedMemoryWindow<'_>]| {
        let windows = windows.iter().map(|window| cedt::Entry::Window(*window));
        codes(&cedt(
            &core::iter::once(bridge).chain(windows).collect::<Vec<_>>(),
        ))
    };
    assert_eq!(of(&[good]), [""; 0]);
    assert_eq!(
        of(&[
            good,
            FixedMemoryWindow {
                base: GIB + GIB / 2,
                ..good
            }
        ]),
        ["windows-overlap"]
    );
    assert_eq!(
        of(&[FixedMemoryWindow {
            base: GIB + 4096,
            ..good
        }]),
        ["window-unaligned"]
    );
    assert_eq!(
        of(&[FixedMemoryWindow {
            size_bytes: 0,
            ..good
        }]),
        ["field-zero"]
    );
    assert_eq!(
        of(&[FixedMemoryWindow {
            encoded_ways: 5,
            ..good
        }]),
        ["field-undefined"]
    );
    assert_eq!(
        of(&[FixedMemoryWindow {
            arithmetic: 2,
            ..good
        }]),
        ["field-undefined"]
    );
    let stranger = [8];
    let targets = List::Values(&stranger);
    assert_eq!(
        of(&[FixedMemoryWindow { targets, ..good }]),
        ["target-unknown"]
    );
    assert_eq!(codes(&cedt(&[bridge, bridge])), ["id-repeated"]);
}

#[test]
fn tables_that_disagree_are_found() {
    let links = [hmat::Entry::Cache(Cache {
        memory: 9,
        ..Default::default()
    })];
    let found = together(&[
        srat(&[memory(0, 0, GIB), memory(2, GIB, GIB), cpu(0, 0), cpu(1, 0)]),
        slit(2, &[10, 20, 20, 10]),
        madt(5, &[apic(0), apic(5)]),
        hmat(2, &links),
    ]);
    let problems: Vec<_> = found
        .iter()
        .map(|f| (f.table, f.offset, f.problem))
        .collect();
    assert_eq!(
        problems,
        [
            (
                Signature::MADT,
                52,
                Problem::ProcessorNotInSrat {
                    processor: ProcessorId::Apic(5)
                }
            ),
            (
                Signature::SRAT,
                144,
                Problem::ProcessorNotInMadt {
                    processor: ProcessorId::Apic(1)
                }
            ),
            (
                Signature::SRAT,
                88,
                Problem::DomainWithoutSlitRow {
                    domain: 2,
                    localities: 2
                }
            ),
            (
                Signature::SLIT,
                46,
                Problem::SlitRowWithoutDomain { locality: 1 }
            ),
            (
                Signature::HMAT,
                40,
                Problem::HmatDomainNotInSrat {
                    role: "memory",
                    domain: 9
                }
            ),
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
